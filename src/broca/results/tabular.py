"""The tables of a result besides its main table, as lines of values by column."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from broca.results.codec import plain

Lines = list[dict[str, Any]]


def tables(holder: Any) -> dict[str, Lines]:
    """Returns every tuple of data classes within a data class, at any depth, by its dotted name.

    A line has the fields of its data class; fields of a data class or a dictionary within it have
    dotted names. Lines within a line are another table, whose lines begin with the first column of
    the containing line.
    """
    by_name: dict[str, Lines] = {}
    for part in fields(holder):
        value = getattr(holder, part.name)
        if is_dataclass(value):
            by_name |= {f"{part.name}.{name}": lines for name, lines in tables(value).items()}
        elif _is_table(value):
            by_name[part.name] = [_line(entry) for entry in value]
            for entry, line in zip(value, by_name[part.name], strict=True):
                first = next(iter(line))
                for name, lines in tables(entry).items():
                    inner = by_name.setdefault(f"{part.name}.{name}", [])
                    inner += [
                        {f"{part.name}.{first}": line[first], **inner_line} for inner_line in lines
                    ]
    return by_name


def _is_table(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(is_dataclass(entry) for entry in value)


def _line(entry: Any) -> dict[str, Any]:
    line: dict[str, Any] = {}
    for part in fields(entry):
        value = getattr(entry, part.name)
        if is_dataclass(value):
            line |= {f"{part.name}.{name}": cell for name, cell in _line(value).items()}
        elif isinstance(value, dict):
            line |= {f"{part.name}.{name}": plain(cell) for name, cell in value.items()}
        elif not _is_table(value):
            line[part.name] = plain(value)
    return line
