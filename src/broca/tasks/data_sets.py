"""Tasks from data sets of the hub and from files with known columns.

The data sets of the neurons paper have short names; any other id, folder or file (see
`Task.from_examples`) works if its columns are known or named by the caller. An example keeps its
topic (`content`) and its `paraphrases`. An answer is right if greedy decoding gives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from broca.errors import BadInput, BrocaError, TaskUnusable, first_line, nearest
from broca.models.checkpoints import skip_retries_if_unreachable
from broca.tasks.example_files import read_rows
from broca.tasks.examples import Task

PREFIX = "data:"
"""Prefix of data sets among the names of tasks."""


DATA_SETS: dict[str, tuple[str, str | None, str]] = {
    "gsm8k": ("openai/gsm8k", "main", "mathematics"),
    "metamath": ("meta-math/MetaMathQA", None, "mathematics"),
    "emotion": ("dair-ai/emotion", "split", "language"),
    "imdb": ("stanfordnlp/imdb", None, "language"),
    "counterfact": ("azhx/counterfact", None, "facts"),
}
"""Id on the hub, configuration there and capability of the paper's data sets that have a known id.
For zsRE and Code25K, give their files or ids (zsRE's columns are known; name the others with
`fields`)."""

Example = dict[str, Any]
RowReader = Callable[[Mapping[str, Any]], Example]


def read_data_set(
    name: str, *, limit: int | None = None, fields: Mapping[str, str] | None = None
) -> Task:
    """Reads a data set.

    Args:
        name: With or without `data:`: a short name, a hub id, a folder, or a file (JSON lines,
            a JSON array of objects, or a table).
        limit: Maximum number of rows to read, from the first.
        fields: The columns of `prompt` and `answer` if they are unknown.

    Returns:
        A task of its rows, named with `data:`; answers follow their prompts after a space.

    Raises:
        BadInput: The data set cannot be read, or its columns are unknown.
        TaskUnusable: The data set has no rows.
    """
    name = name.removeprefix(PREFIX)
    path, config, capability = DATA_SETS.get(name, (name, None, name))
    rows, columns, labels = _rows(path, config)
    first = list(islice(rows, limit))
    if not first:
        raise TaskUnusable(f"data set '{name}' has no rows")
    examples = list(map(_reader(name, columns, labels, fields or {}), first))
    for example in examples:
        answer = example["answer"].strip()
        example["answer"] = f" {answer}" if answer else ""  # empty: left out and counted
    return Task(
        PREFIX + name, capability=capability, examples=tuple(examples), kind="loglikelihood"
    )


def _rows(path: str, config: str | None) -> tuple[Iterable[Any], set[str], list[str] | None]:
    """Returns rows, the names of their columns, and the names of their labels if there are any."""
    import datasets

    file = Path(path).expanduser()
    try:
        if file.is_file():
            rows = []
            for place, row in read_rows(file):
                if not isinstance(row, dict):
                    raise BadInput(
                        f"{place} has no names of columns: give JSON objects, or a table"
                    )
                rows.append(row)
            columns = set(chain(*rows))
            # what a row has not is None
            return [dict.fromkeys(columns) | row for row in rows], columns, None
        if not file.is_dir():
            skip_retries_if_unreachable()
        data = datasets.load_dataset(path, config, split="train")
    except BrocaError:
        raise
    except Exception as error:  # a data set may raise anything
        raise BadInput(
            f"data set '{path}' could not be read{nearest(path, DATA_SETS)}: "
            f"{type(error).__name__}: {first_line(error)}; give {', '.join(DATA_SETS)}, a hub id, "
            "a folder or a file of JSON lines"
        ) from error
    return data, set(data.column_names), getattr(data.features.get("label"), "names", None)


def _reader(
    name: str, columns: set[str], labels: list[str] | None, fields: Mapping[str, str]
) -> RowReader:
    """Returns the reader of rows with these columns."""
    unknown = set(fields) - {"prompt", "answer"}
    missing = [column for column in fields.values() if column not in columns]
    if unknown or missing:
        raise BadInput(
            f"`fields` takes prompt=COLUMN,answer=COLUMN; data set '{name}' has the columns "
            f"{', '.join(sorted(columns))}"
        )
    if len(fields) == 2:
        prompt, answer = fields["prompt"], fields["answer"]
        return lambda row: _plain(row[prompt], row[answer], "")
    for needed, reader in _READERS:
        if needed <= columns:
            return reader
    if {"text", "label"} <= columns:  # the label's name is the answer

        def labelled(row: Mapping[str, Any]) -> Example:
            label = row["label"]
            answer = labels[label] if labels and isinstance(label, int) else label
            return _plain(f"{str(row['text']).strip()}\nLabel:", answer, row["text"])

        return labelled
    raise BadInput(
        f"data set '{name}' has the columns {', '.join(sorted(columns))}: which are the question "
        "and the answer? Name them in `fields` as prompt=COLUMN,answer=COLUMN"
    )


def _plain(prompt: Any, answer: Any, content: Any) -> Example:
    return {"prompt": str(prompt), "answer": str(answer), "content": str(content)}


def _worded(prompts: list[Any], answer: Any, content: Any) -> Example:
    first, *others = [str(prompt).strip() for prompt in prompts]
    return {**_plain(first, answer, content), "paraphrases": others}


def _rewrite(row: Mapping[str, Any]) -> Example:
    """CounterFact: the true object is the answer, not the edit."""
    rewrite = row["requested_rewrite"]
    prompt = rewrite["prompt"].replace("{}", rewrite["subject"])
    return _worded([prompt, *row["paraphrase_prompts"]], rewrite["target_true"]["str"], prompt)


def _relation(row: Mapping[str, Any]) -> Example:
    """ZsRE: a question, its rephrasing, and the first of its answers."""
    return _worded([row["src"], row["rephrase"]], row["answers"][0], row["src"])


def _prompt_answer(row: Mapping[str, Any]) -> Example:
    """The user's data: prompt, answer, and paraphrases if any."""
    prompts = [row["prompt"], *(row.get("paraphrases") or [])]
    return _worded(prompts, row["answer"], row.get("content") or row["prompt"])


def _query_response(row: Mapping[str, Any]) -> Example:
    """MetaMath."""
    return _plain(f"Question: {row['query']}\nAnswer:", row["response"], row["query"])


def _question_answer(row: Mapping[str, Any]) -> Example:
    """GSM8K: calculator annotations are removed; the solution ends with its number."""
    answer = re.sub(r"<<.*?>>", "", str(row["answer"]))
    return _plain(f"Question: {row['question']}\nAnswer:", answer, row["question"])


_READERS: tuple[tuple[set[str], RowReader], ...] = (
    ({"requested_rewrite", "paraphrase_prompts"}, _rewrite),
    ({"src", "rephrase", "answers"}, _relation),
    ({"prompt", "answer"}, _prompt_answer),
    ({"query", "response"}, _query_response),
    ({"question", "answer"}, _question_answer),
)
"""Known columns, the most specific first."""
