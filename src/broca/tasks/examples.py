"""Tasks from the user's examples: pairs of prompt and answer, or prompts with choices."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeGuard

from broca.errors import BadInput, TaskUnusable

MetricFunction = Callable[[str, Any], float]
"""A function of the model's output and the right answer, or of the output and the whole example if
its second parameter is called `document`. Higher is better, and 1 is right."""

_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")

_OTHER_FILES = (
    (
        b"version https://git-lfs",
        "a pointer of git-lfs, not the data: run `git lfs pull` in its repository",
    ),
    (b"\x1f\x8b", "compressed with gzip: unpack it"),
    (b"BZh", "compressed with bzip2: unpack it"),
    (b"\xfd7zXZ", "compressed with xz: unpack it"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it"),
    (b"PK\x03\x04", "a zip archive or an Excel table: unpack it, or save the table as CSV"),
    (b"PAR1", "a Parquet file: read it with pandas and give `Task.from_examples` the DataFrame"),
    (b"<", "HTML or XML, perhaps a page in place of the download: fetch the data themselves"),
)
"""First bytes of files that hold no text of examples, and what these files are."""

ANSWER_METRICS = ("exact_match", "exact", "contains", "first-word")
"""Metrics of generated answers: the whole output, the answer within it, or its first word."""


def names_file(name: str) -> bool:
    """Whether the name of a task is the path of a file.

    Suffixes of examples are enough; a file of another suffix is read if it exists, so that the
    refusal says what it is.
    """
    suffix = Path(name).suffix.lower()
    return suffix in _SUFFIXES or bool(suffix and os.path.isfile(os.path.expanduser(name)))


TaskKind = Literal["generate_until", "multiple_choice", "loglikelihood"]
"""lm-eval's output types of examples."""

_KINDS: dict[str, TaskKind] = {"answer": "generate_until", "choices": "multiple_choice"}


@dataclass(frozen=True, eq=False)
class Task:
    """A task that the user defines: examples, or the name of a task of the catalog.

    The prompt and the answer are joined without a delimiter. Answers are decoded greedily up to the
    end of the sequence or `until`, and compared with both sides stripped (`exact_match`, also named
    `exact`). The metric `contains` asks for the answer anywhere in the output. `first-word` asks
    whether the output begins with the words of the answer, in any case and without quotes,
    brackets and punctuation around words. Choices are compared by their likelihood (`acc`;
    `acc_norm` divides by their length). In a chat template, answers and choices are stripped.

    Attributes:
        name: Name in results; without examples the name of a task of the catalog or the path of a
            JSON-lines file.
        metric: Name of the metric, or a function; see `MetricFunction`.
        until: Strings that end a generation, besides the end of the sequence.
        max_new_tokens: Maximum number of tokens of a generation; by default those of the longest
            answer plus 8.
        capability: Capability that it measures; by default its name.
        examples: Its examples: `prompt` and `answer`, or `prompt`, `choices` and `label` (an
            index), and any other fields.
        kind: lm-eval's output type; `loglikelihood` tests whether greedy decoding gives the answer.

    Raises:
        BadInput: The metric has the wrong type, or a setting is given that a named task defines
            itself.
    """

    name: str
    metric: str | MetricFunction | None = None
    until: tuple[str, ...] | str = ()
    max_new_tokens: int | None = None
    capability: str = ""
    examples: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    kind: TaskKind = "generate_until"

    def __post_init__(self) -> None:
        until = (self.until,) if isinstance(self.until, str) else tuple(self.until)
        object.__setattr__(self, "until", until)
        if not isinstance(self.name, str) or not self.name.strip():
            raise BadInput(
                f"`name` must be a task's name, not {self.name!r}; `Task.from_examples` takes "
                "examples"
            )
        if not (callable(self.metric) or isinstance(self.metric, str | None)):
            raise BadInput(
                f"`metric` must be a name or a function, not {type(self.metric).__name__}"
            )
        if not all(isinstance(text, str) and text for text in until):
            raise BadInput("`until` must be a string or several, none of them empty")
        if self.max_new_tokens is not None and self.max_new_tokens < 1:
            raise BadInput(f"`max_new_tokens` must be at least 1, not {self.max_new_tokens}")
        if not self.examples and not names_file(self.name) and (until or self.max_new_tokens):
            raise BadInput(
                f"`until` and `max_new_tokens` are for examples: task '{self.name}' defines "
                "the end of a generation itself"
            )

    @classmethod
    def from_examples(
        cls,
        examples: Iterable[Any] | str | os.PathLike[str],
        *,
        name: str | None = None,
        metric: str | MetricFunction | None = None,
        until: str | Sequence[str] = (),
        max_new_tokens: int | None = None,
        capability: str = "",
    ) -> Task:
        """Makes a task from examples.

        Args:
            examples: Pairs of prompt and answer, dictionaries, a `datasets.Dataset` or a DataFrame
                with such columns, or the path of a file: JSON lines with one such dictionary a
                line, a JSON array of them, or CSV with a line of names. A label is the index of
                the right choice or its text.
            name: Name in results; by default `examples` or the path. Tasks of a run need different
                names.
            metric: Name of the metric, or a function; see `MetricFunction`.
            until: Strings that end a generation.
            max_new_tokens: Longest generation.
            capability: Capability that it measures; by default its name.

        Raises:
            BadInput: The file cannot be read, or an example is not of a known form; the message
                names its line or its place in the list.
            TaskUnusable: There are no examples.
        """
        if isinstance(examples, str | os.PathLike):
            name = name or str(examples)
            placed = read_rows(Path(examples).expanduser())
        elif callable(records := getattr(examples, "to_dict", None)) and hasattr(examples, "iloc"):
            placed = _numbered(records("records"))  # a DataFrame of pandas
        elif callable(records := getattr(examples, "to_dicts", None)):
            placed = _numbered(records())  # a DataFrame of polars
        elif isinstance(examples, Mapping) or not isinstance(examples, Iterable):
            raise BadInput(
                "`examples` must be a list of pairs or dictionaries, one split of a data set or "
                f"the path of a JSON-lines file, not {type(examples).__name__}"
            )
        else:
            placed = _numbered(examples)
        name, checked, kind = name or "examples", [], ""
        for place, content in placed:
            example, asks = _example(content, place)
            kind = kind or asks
            if asks != kind:
                raise BadInput(f"{place} has `{asks}`, where those before it have `{kind}`")
            checked.append(example)
        if not checked:
            raise TaskUnusable(f"task '{name}' has no examples")
        return cls(
            name, metric, tuple(until) if not isinstance(until, str) else until, max_new_tokens,
            capability, tuple(checked), _KINDS[kind],
        )  # fmt: skip

    from_file = from_examples

    def by_wording(self) -> Task:
        """Returns the task with an example for every paraphrase.

        All paraphrases of an example share its `content`, by default its prompt; `wording` numbers
        them.
        """
        worded = [wording for example in self.examples for wording in _worded(example)]
        return replace(self, examples=tuple(worded))


def _worded(example: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "paraphrases" not in example:
        yield example
        return
    shared = {key: value for key, value in example.items() if key != "paraphrases"}
    content = str(example.get("content") or example["prompt"])
    for number, prompt in enumerate([example["prompt"], *(example["paraphrases"] or [])]):
        yield {**shared, "prompt": str(prompt), "content": content, "wording": f"wording {number}"}


def _numbered(examples: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"example {number}", content) for number, content in enumerate(examples))


def read_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Returns the rows of a file with their places: JSON lines, a JSON array, or a table.

    Raises:
        BadInput: The file cannot be read, or is something else; the message says what it is.
    """
    text = _text_of(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        yield from _table(path, text)
        return
    array = text.lstrip().startswith("[")
    if array or path.suffix.lower() == ".json":
        try:
            content = json.loads(text)
        except ValueError as error:
            if array:
                raise BadInput(f"'{path}' is not a JSON array: {error}; correct it") from error
        else:
            entries = content if isinstance(content, list) else [content]
            yield from ((f"entry {n} of '{path}'", entry) for n, entry in enumerate(entries))
            return
    yield from _lines(path, text)


def _table(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Returns the rows of a table; the line of names says what is between its columns."""
    names = text.lstrip("\r\n").partition("\n")[0]
    rows = csv.DictReader(
        io.StringIO(text, newline=""), strict=True, delimiter=max(",;\t", key=names.count)
    )
    try:
        for row in rows:
            place = f"line {rows.line_num} of '{path}'"
            if None in row or None in row.values():
                raise BadInput(f"{place} has another number of fields than the line of names")
            yield place, _cells(row, place)
    except csv.Error as error:
        raise BadInput(f"line {rows.line_num} of '{path}' is not CSV: {error}") from error


def _cells(row: dict[str, Any], place: str) -> dict[str, Any]:
    """Reads the choices of a row, a JSON array, and a label that is an index."""
    for key in ("choices", "label"):
        if key in row and not row[key].strip():
            row[key] = None
    if row.get("choices") is None:
        return row
    try:
        row["choices"] = json.loads(row["choices"])
    except ValueError as error:
        raise BadInput(
            f'{place}: `choices` must be a JSON array, such as ["a", "b"]: {error}'
        ) from error
    label = (row.get("label") or "").strip()
    if not label.isdecimal():
        return row
    texts = [str(choice).strip() for choice in row["choices"]]
    if label in texts and texts[int(label) : int(label) + 1] != [label]:
        raise BadInput(
            f"{place}: `label` {label} is the index of one choice and the text of another: give "
            'JSON lines, where "label": 1 is an index and "label": "1" a text'
        )
    return {**row, "label": int(label)}


def _text_of(path: Path) -> str:
    """Reads a file as UTF-8, UTF-16 or UTF-32, whichever its first bytes are.

    Raises:
        BadInput: It cannot be read, or is something else; the message says what it is.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(
            f"task file '{path}' cannot be read: {error.strerror}; check the path"
        ) from error
    first = content[:200].lstrip()
    for beginning, kind in _OTHER_FILES:
        if first.startswith(beginning):
            raise BadInput(f"task file '{path}' is {kind}")
    try:
        return content.decode(json.detect_encoding(content))
    except UnicodeDecodeError as error:
        raise BadInput(
            f"task file '{path}' is not UTF-8 text (byte {error.start} is "
            f"{content[error.start]:#04x}): save it as UTF-8 (from Latin-1: `iconv -f latin1 -t "
            "utf-8`)"
        ) from error


def _lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Returns the objects of JSON lines with their places; blank lines are left out."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"line {number} of '{path}'"
        try:
            content = json.loads(line)
        except ValueError as error:
            raise BadInput(f"{place} is not JSON: {error}; correct it") from error
        if not isinstance(content, dict):
            raise BadInput(f'{place} is not a JSON object: write {{"prompt": ..., "answer": ...}}')
        yield place, content


def _example(content: Any, place: str) -> tuple[dict[str, Any], str]:
    """Checks an example, and returns it with the field that determines its kind.

    Args:
        content: The example.
        place: Its name in messages.
    """
    content = _of_python(content)
    if isinstance(content, tuple | list) and len(content) == 2:
        content = dict(zip(("prompt", "answer"), content, strict=True))
    if not isinstance(content, Mapping):
        raise BadInput(f"{place} is neither a pair of prompt and answer nor a dictionary")
    # a DataFrame has NaN for nothing
    example = {
        key: value
        for key, value in content.items()
        if not (_is_number(value) and math.isnan(value))
    }
    for key, value in example.items():
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            raise BadInput(
                f"{place}: `{key}` holds half of a pair of surrogates, which is no text: correct it"
            ) from error
    example["prompt"] = _text(example, "prompt", place)
    if example.get("choices") is None:
        answer = example.get("answer")
        # an empty answer is right if the model ends the sequence
        empty = isinstance(answer, str) and not answer.strip()
        example["answer"] = "" if empty else _text(example, "answer", place)
        return example, "answer"
    choices = _of_python(example["choices"])
    if not isinstance(choices, list | tuple) or len(choices) < 2:
        raise BadInput(f"{place}: `choices` must be a list of two or more texts")
    example["choices"] = [_text({"choices": choice}, "choices", place) for choice in choices]
    example["label"] = _label(example, place)
    return example, "choices"


def _text(example: Mapping[str, Any], key: str, place: str) -> str:
    """Returns a field as text; numbers are converted."""
    value = example.get(key)
    if _is_number(value):
        value = str(value)
    if value is None:
        has = ", ".join(str(name) for name, given in example.items() if given is not None)
        raise BadInput(
            f"{place} has no `{key}` (it has {has[:200]}): an example has "
            "`prompt` and `answer`, or `prompt`, `choices` and `label`"
        )
    if not isinstance(value, str):
        raise BadInput(f"{place}: `{key}` must be text, not {type(value).__name__}")
    if not value.strip():
        raise BadInput(f"{place} has an empty `{key}`: correct or remove it")
    return str(value)


def _of_python(value: Any) -> Any:
    """Returns a value of NumPy, as DataFrames hold, as one of Python; others as they are."""
    return value.tolist() if hasattr(value, "tolist") else value


def _is_number(value: Any) -> TypeGuard[int]:
    """Whether a value is a number of Python or NumPy, not a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _label(example: Mapping[str, Any], place: str) -> int:
    """Returns the index of the right choice, from an index or a choice's text."""
    label, choices = _of_python(example.get("label")), example["choices"]
    indices = list(range(len(choices)))
    if _is_number(label) and label in indices:
        return indices.index(label)
    stripped = [choice.strip() for choice in choices]
    if isinstance(label, str) and label.strip() in stripped:
        return choices.index(label) if label in choices else stripped.index(label.strip())
    raise BadInput(
        f"{place}: `label` must be the index of a choice, from 0 to {len(choices) - 1}, or its "
        f"text, not {label!r}"
    )
