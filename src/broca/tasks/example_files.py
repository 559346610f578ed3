"""Reads the rows of a file of examples: JSON lines, a JSON array, or a table."""

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from broca.errors import BadInput

_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")


EXAMPLES = Path(__file__).parent / "shipped" / "data" / "examples"
"""The folder of the files of examples that are part of the package."""


def names_file(name: str) -> bool:
    """Whether the name of a task is the path of a file.

    Suffixes of examples are enough; a file of another suffix is read if it exists, so that the
    refusal says that it holds no examples.
    """
    suffix = Path(name).suffix.lower()
    return suffix in _SUFFIXES or bool(suffix and os.path.isfile(os.path.expanduser(name)))


def read_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Returns the rows of a file in UTF-8, UTF-16 or UTF-32 with their places.

    The name of a shipped example, such as `sums.jsonl`, means that file where no other has it.

    Raises:
        BadInput: The file cannot be read, or is neither JSON nor a table.
    """
    shipped = EXAMPLES / path.name
    if path == Path(path.name) and not path.exists() and shipped.is_file():
        path = shipped
    if path.exists() and not path.is_file():
        raise BadInput(f"task file '{path}' is no regular file: give a file of examples")
    try:
        content = path.read_bytes()
        text = content.decode(json.detect_encoding(content))
    except OSError as error:
        raise BadInput(
            f"task file '{path}' cannot be read: {error.strerror}; check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise BadInput(
            f"task file '{path}' is no text in UTF-8 (byte {error.start} is "
            f"{content[error.start]:#04x}): save the examples as JSON lines or as CSV"
        ) from error
    rows = _table if path.suffix.lower() in (".csv", ".tsv") else json_rows
    return rows(path, text)


def _table(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yields the rows of a table; the line of names says what is between its columns."""
    csv.field_size_limit(max(len(text), csv.field_size_limit()))  # `Task` bounds texts
    before, text = text.count("\n"), text.lstrip("\r\n")
    before -= text.count("\n")  # blank lines
    names = text.partition("\n")[0]
    rows = csv.DictReader(
        io.StringIO(text, newline=""), strict=True, delimiter=max(",;\t", key=names.count)
    )
    try:
        for row in rows:
            place = f"line {before + rows.line_num} of '{path}'"
            if None in row or None in row.values():
                raise BadInput(f"{place} has another number of fields than the line of names")
            yield place, row
    except csv.Error as error:
        raise BadInput(f"line {before + rows.line_num} of '{path}' is not CSV: {error}") from error


def json_rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yields the values of JSON lines, or the entries of the only one if it is an array.

    Raises:
        BadInput: The text is not JSON; the message names the line of `path`.
    """
    decoder, blank = json.JSONDecoder(), re.compile(r"\s*")
    values: list[tuple[str, Any]] = []
    line, end = 1, 0
    while (start := blank.match(text, end).end()) < len(text):  # type: ignore[union-attr]
        line += text.count("\n", end, start)
        try:
            value, stop = decoder.raw_decode(text, start)
            json.dumps(value, ensure_ascii=False).encode()  # half a character is no text
        except (ValueError, RecursionError) as error:
            place, reason = getattr(error, "lineno", line), getattr(error, "msg", str(error))
            raise BadInput(
                f"line {place} of '{path}' is not JSON: {reason}; examples are JSON lines, a JSON "
                "array or CSV"
            ) from error
        values.append((f"line {line} of '{path}'", value))
        line, end = line + text.count("\n", start, stop), stop
    if len(values) == 1 and isinstance(array := values[0][1], list):
        values = [(f"entry {number} of '{path}'", entry) for number, entry in enumerate(array)]
    yield from values
