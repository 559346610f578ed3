"""Reads the rows of a file of examples: JSON lines, a JSON array, or a table."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from broca.errors import BadInput

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


def names_file(name: str) -> bool:
    """Whether the name of a task is the path of a file.

    Suffixes of examples are enough; a file of another suffix is read if it exists, so that the
    refusal says what it is.
    """
    suffix = Path(name).suffix.lower()
    return suffix in _SUFFIXES or bool(suffix and os.path.isfile(os.path.expanduser(name)))


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
