"""Data sets of the hub and of files, as questions with gold answers.

The paper's data sets have short names; any other id, folder or JSON-lines file works whose columns
are known or named by the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broca.errors import BadInput, TaskUnusable, nearest
from broca.models.hub import skip_retries_if_unreachable
from broca.neurons.questions import Text

PREFIX = "data:"
"""What marks a data set among the names of tasks."""


@dataclass(frozen=True)
class Corpus:
    """A data set with a short name.

    Attributes:
        path: Its id on the hub.
        config: Its configuration there, if it has several.
        split: The split that is used.
        capability: What it measures.
    """

    path: str
    config: str | None
    split: str
    capability: str


CORPORA: dict[str, Corpus] = {
    "gsm8k": Corpus("openai/gsm8k", "main", "train", "mathematics"),
    "metamath": Corpus("meta-math/MetaMathQA", None, "train", "mathematics"),
    "emotion": Corpus("dair-ai/emotion", "split", "train", "language"),
    "imdb": Corpus("stanfordnlp/imdb", None, "train", "language"),
    "counterfact": Corpus("azhx/counterfact", None, "train", "facts"),
}
"""The paper's data sets that have an id on the hub. zsRE and Code25K have none that is certain:
give their files or ids with `data:` (zsRE's columns are known; name the others with --fields)."""


def load_texts(
    name: str, *, limit: int | None = None, fields: Mapping[str, str] | None = None
) -> tuple[list[Text], str]:
    """Reads a data set.

    Args:
        name: With or without `data:`: a short name, a hub id, a folder, or a JSON-lines file.
        limit: Most rows to read, from the first.
        fields: Which column is the `prompt` and which the `answer`, where they are not known.

    Returns:
        Its questions (paraphrases are questions of one content), and its capability.

    Raises:
        BadInput: It cannot be read, or its columns are not known.
        TaskUnusable: It has no rows.
    """
    name = name.removeprefix(PREFIX)
    corpus = CORPORA.get(name, Corpus(name, None, "train", name))
    rows, labels = _rows(corpus)
    columns = set(rows.column_names)
    reader = _reader(name, columns, labels, fields or {})
    texts: list[Text] = []
    for number, row in enumerate(rows):
        if limit is not None and number >= limit:
            break
        texts += reader(row)
    if not texts:
        raise TaskUnusable(f"data set '{name}' has no rows")
    return texts, corpus.capability


def _rows(corpus: Corpus) -> tuple[Any, list[str] | None]:
    """The rows of a data set, and the names of its labels where it has some."""
    import datasets

    path = Path(corpus.path).expanduser()
    try:
        if path.is_file():
            rows = datasets.load_dataset("json", data_files=str(path), split="train")
        else:
            if not path.is_dir():
                skip_retries_if_unreachable()
            rows = datasets.load_dataset(corpus.path, corpus.config, split=corpus.split)
    except Exception as error:  # a data set may raise anything
        cause = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise BadInput(
            f"data set '{corpus.path}' could not be read{nearest(corpus.path, CORPORA)}: "
            f"{type(error).__name__}: {cause}; give {', '.join(CORPORA)}, a hub id, a folder or a "
            "JSON-lines file"
        ) from error
    label = rows.features.get("label")
    return rows, getattr(label, "names", None)


Reader = Callable[[Mapping[str, Any]], list[Text]]


def _reader(
    name: str, columns: set[str], labels: list[str] | None, fields: Mapping[str, str]
) -> Reader:
    """How to make questions from a row, by the columns it has."""
    unknown = set(fields) - {"prompt", "answer"}
    missing = [column for column in fields.values() if column not in columns]
    if unknown or missing:
        raise BadInput(
            f"--fields takes prompt=COLUMN,answer=COLUMN; data set '{name}' has the columns "
            f"{', '.join(sorted(columns))}"
        )
    if len(fields) == 2:
        prompt, answer = fields["prompt"], fields["answer"]
        return lambda row: [Text(str(row[prompt]), str(row[answer]))]
    for needed, reader in _READERS:
        if needed <= columns:
            return reader
    if {"text", "label"} <= columns:
        return lambda row: [_labelled(row, labels)]
    raise BadInput(
        f"data set '{name}' has the columns {', '.join(sorted(columns))}: which are the question "
        "and the answer? Give --fields prompt=COLUMN,answer=COLUMN"
    )


def _own(row: Mapping[str, Any]) -> list[Text]:
    """Data of the user's own: prompt, answer, and paraphrases if there are some."""
    prompts = [row["prompt"], *(row.get("paraphrases") or [])]
    return list(_worded(prompts, str(row["answer"]), str(row.get("content") or row["prompt"])))


def _worded(prompts: list[str], answer: str, content: str) -> Iterator[Text]:
    for number, prompt in enumerate(prompts):
        yield Text(str(prompt).strip(), answer, content, f"wording {number}")


def _question_answer(row: Mapping[str, Any]) -> list[Text]:
    """GSM8K: calculator notes are cut, the solution ends with its number."""
    answer = re.sub(r"<<.*?>>", "", str(row["answer"])).strip()
    return [Text(f"Question: {row['question']}\nAnswer:", answer, str(row["question"]))]


def _query_response(row: Mapping[str, Any]) -> list[Text]:
    """MetaMath."""
    return [Text(f"Question: {row['query']}\nAnswer:", str(row["response"]), str(row["query"]))]


def _rewrite(row: Mapping[str, Any]) -> list[Text]:
    """CounterFact: the true object is the answer, whatever edit is asked for."""
    asked = row["requested_rewrite"]
    prompt = asked["prompt"].replace("{}", asked["subject"])
    prompts = [prompt, *row["paraphrase_prompts"]]
    return list(_worded(prompts, asked["target_true"]["str"], prompt))


def _relation(row: Mapping[str, Any]) -> list[Text]:
    """ZsRE: a question, its rephrasing, and the first of its answers."""
    return list(_worded([row["src"], row["rephrase"]], str(row["answers"][0]), str(row["src"])))


def _labelled(row: Mapping[str, Any], labels: list[str] | None) -> Text:
    """Emotion, IMDB: the label's name is the answer."""
    label = row["label"]
    answer = labels[label] if labels and isinstance(label, int) else str(label)
    return Text(f"{str(row['text']).strip()}\nLabel:", answer, str(row["text"]))


_READERS: tuple[tuple[set[str], Reader], ...] = (
    ({"requested_rewrite", "paraphrase_prompts"}, _rewrite),
    ({"src", "rephrase", "answers"}, _relation),
    ({"prompt", "answer"}, _own),
    ({"query", "response"}, _query_response),
    ({"question", "answer"}, _question_answer),
)
"""Known columns, the most particular first."""
