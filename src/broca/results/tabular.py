"""The lists within a result as tables: rows of values by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from broca.results.files import plain

Lines = list[dict[str, Any]]


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval.

    Attributes:
        value: The estimate.
        low: Lower end.
        high: Upper end.
    """

    value: float
    low: float
    high: float


def tables(holder: Any) -> dict[str, Lines]:
    """Returns every list of records within a record, at any depth, by its dotted name.

    A record is a data class or a mapping. A row has its values; those of a record within it have
    dotted names, and intervals stay whole. Lists within rows are another table, whose rows begin
    with the first column of the containing row.
    """
    by_name: dict[str, Lines] = {}
    for name, value in _parts(holder):
        if _is_record(value):
            by_name |= {f"{name}.{inner}": lines for inner, lines in tables(value).items()}
        elif _are_records(value):
            by_name |= tables_of(name, value)
    return by_name


def tables_of(name: str, records: Sequence[Any]) -> dict[str, Lines]:
    """Returns records as a table with a name, and the lists within them as further tables."""
    by_name: dict[str, Lines] = {name: [_line(record) for record in records]}
    for record, line in zip(records, by_name[name], strict=True):
        first = [(f"{name}.{column}", value) for column, value in line.items()][:1]
        for inner, lines in tables(record).items():
            rows = by_name.setdefault(f"{name}.{inner}", [])
            rows += [{**dict(first), **values} for values in lines]
    return by_name


def framed(lines: Lines) -> Lines:
    """Returns rows of plain values: an interval becomes three columns."""
    return [
        {
            f"{name}{end}": part
            for name, value in line.items()
            for end, part in (
                ((f".{end}", part) for end, part in plain(value).items())
                if isinstance(value, Interval)
                else (("", plain(value)),)
            )
        }
        for line in lines
    ]


def _parts(record: Any) -> list[tuple[str, Any]]:
    if isinstance(record, Mapping):
        return list(record.items())
    return [(part.name, getattr(record, part.name)) for part in fields(record)]


def _is_record(value: Any) -> bool:
    return isinstance(value, Mapping) or (is_dataclass(value) and not isinstance(value, Interval))


def _are_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_record, value))


def _line(record: Any) -> dict[str, Any]:
    line: dict[str, Any] = {}
    for name, value in _parts(record):
        if _is_record(value):
            line |= {f"{name}.{inner}": cell for inner, cell in _line(value).items()}
        elif not _are_records(value):
            line[name] = value
    return line
