"""Data sets of the hub and of files, as questions with gold answers."""

from __future__ import annotations

from collections.abc import Mapping

from broca.neurons.questions import Text
from broca.tasks.data_sets import read_data_set


def load_texts(
    name: str, *, limit: int | None = None, fields: Mapping[str, str] | None = None
) -> tuple[list[Text], str]:
    """Reads a data set; arguments and errors are those of `read_data_set`.

    Returns:
        Its questions (paraphrases are questions of one content), and its capability.
    """
    task = read_data_set(name, limit=limit, fields=fields)
    texts = [
        Text(
            example["prompt"],
            example["answer"].strip(),
            example["content"],
            example.get("wording", ""),
        )
        for example in task.by_wording().examples
    ]
    return texts, task.capability
