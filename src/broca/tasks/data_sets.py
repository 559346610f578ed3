"""Tasks from data sets of the hub and from files with known columns.

The data sets of the neurons paper have short names; any other id, folder or file (see
`Task.from_examples`) works if its columns are known or named by the caller. An example keeps its
topic (`content`) and its `paraphrases`. An answer is right if greedy decoding gives it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from broca.errors import BadInput, TaskUnusable, first_line, nearest
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
    rows, columns = _rows(path, config)
    first = list(islice(rows, limit))
    if not first:
        raise TaskUnusable(f"data set '{name}' has no rows")
    examples = list(map(_reader(name, columns, fields or {}), first))
    for example in examples:
        answer = example["answer"].strip()
        example["answer"] = f" {answer}" if answer else ""  # empty: left out and counted
    return Task(
        PREFIX + name, capability=capability, examples=tuple(examples), kind="loglikelihood"
    )


def _rows(path: str, config: str | None) -> tuple[Iterable[Any], set[str]]:
    """Returns rows, with the names of labels in place of their numbers, and their columns."""
    import datasets

    file = Path(path).expanduser()
    if file.is_file():
        rows = [row for _, row in read_rows(file)]
        if not all(isinstance(row, dict) for row in rows):
            raise BadInput(f"'{path}' has no names of columns: give JSON objects, or a table")
        columns = set(chain(*rows))
        return [dict.fromkeys(columns) | row for row in rows], columns  # what is missing is None
    if not file.is_dir():
        skip_retries_if_unreachable()
    try:
        data = datasets.load_dataset(path, config, split="train")
    except Exception as error:  # a data set may raise anything
        raise BadInput(
            f"data set '{path}' could not be read{nearest(path, DATA_SETS)}: "
            f"{type(error).__name__}: {first_line(error)}; give {', '.join(DATA_SETS)}, a hub id, "
            "a folder or a file of JSON lines"
        ) from error
    names = getattr(data.features.get("label"), "names", None)
    labelled = ({**row, "label": names[row["label"]]} for row in data) if names else data
    return labelled, set(data.column_names)


def _reader(name: str, columns: set[str], fields: Mapping[str, str]) -> RowReader:
    """Returns the reader of rows with these columns."""
    if fields.keys() == {"prompt", "answer"} and columns.issuperset(fields.values()):
        return lambda row: _plain(row[fields["prompt"]], row[fields["answer"]], "")
    known = [reader for needed, reader in _READERS if needed <= columns]
    if fields or not known:
        raise BadInput(
            f"data set '{name}' has the columns {', '.join(sorted(columns))}: name those of the "
            "question and the answer in `fields` as prompt=COLUMN,answer=COLUMN"
        )
    return known[0]


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


def _prompt_answer(row: Mapping[str, Any]) -> Example:
    """The user's data: prompt, answer, and paraphrases if any."""
    prompts = [row["prompt"], *(row.get("paraphrases") or [])]
    return _worded(prompts, row["answer"], row.get("content") or row["prompt"])


def _asked(row: Mapping[str, Any], question: str, answer: str) -> Example:
    """MetaMath, and GSM8K without its calculator's annotations."""
    solution = re.sub(r"<<.*?>>", "", str(row[answer]))
    return _plain(f"Question: {row[question]}\nAnswer:", solution, row[question])


_READERS: tuple[tuple[set[str], RowReader], ...] = (
    ({"requested_rewrite", "paraphrase_prompts"}, _rewrite),
    (
        {"src", "rephrase", "answers"},  # zsRE
        lambda row: _worded([row["src"], row["rephrase"]], row["answers"][0], row["src"]),
    ),
    ({"prompt", "answer"}, _prompt_answer),
    ({"query", "response"}, lambda row: _asked(row, "query", "response")),
    ({"question", "answer"}, lambda row: _asked(row, "question", "answer")),
    (
        {"text", "label"},
        lambda row: _plain(f"{str(row['text']).strip()}\nLabel:", row["label"], row["text"]),
    ),
)
"""Known columns, the most specific first."""
