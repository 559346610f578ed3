"""A reproduction as plain data, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

from broca.results import encode

SCHEMA = 1

Row = dict[str, Any]
"""One row of a table: plain values by column."""


@dataclass(frozen=True)
class Reproduction:
    """One table or figure, repeated.

    Attributes:
        name: A key of `NAMES`.
        models: The models, in the order given.
        rows: Its rows; each names its model.
        settings: What was asked, as plain values.
        notes: What the reader should know, such as tasks that a model cannot do.
        shows: What it shows, as `NAMES` says it.
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
    """The rows as CSV; a cell is empty where a row lacks the column."""
    text = io.StringIO()
    writer = csv.DictWriter(text, reproduction.columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(reproduction.rows)
    return text.getvalue()


def as_json(reproduction: Reproduction) -> str:
    """Everything as indented JSON, keys in a fixed order."""
    return encode(reproduction)
