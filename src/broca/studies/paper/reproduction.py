"""A reproduction as plain data, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

from broca.results import encode

SCHEMA = 1

Row = dict[str, Any]
"""A row of a table: plain values by column."""


@dataclass(frozen=True)
class Reproduction:
    """A repeated table or figure.

    Attributes:
        name: A key of `NAMES`.
        models: The models, in the order given.
        rows: The rows, each with its model.
        settings: The settings, as plain values.
        notes: Notes for the reader, such as tasks that a model cannot do.
        shows: Description from `NAMES`.
        broca: Version of broca.
        schema: Version of this layout.
    """

    name: str
    models: tuple[str, ...]
    rows: tuple[Row, ...]
    settings: Row
    notes: tuple[str, ...] = ()
    shows: str = ""
    broca: str = ""
    schema: int = SCHEMA

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all rows, in the order of their first appearance."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row))


def as_csv(reproduction: Reproduction) -> str:
    """Returns the rows as CSV; a cell is empty if a row lacks the column."""
    text = io.StringIO()
    writer = csv.DictWriter(text, reproduction.columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(reproduction.rows)
    return text.getvalue()


def as_json(reproduction: Reproduction) -> str:
    """Returns the reproduction as indented JSON, with keys in a fixed order."""
    return encode(reproduction)
