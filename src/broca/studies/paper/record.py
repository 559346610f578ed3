"""A reproduction as plain data, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import Any

from broca.studies.paper.names import NAMES

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
        broca: Version of broca.
    """

    name: str
    models: tuple[str, ...]
    rows: tuple[Row, ...]
    settings: Row
    notes: tuple[str, ...] = ()
    broca: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all rows, in the order of their first appearance."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row))


def as_csv(found: Reproduction) -> str:
    """The rows as CSV; a cell is empty where a row lacks the column."""
    text = io.StringIO()
    writer = csv.DictWriter(text, found.columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(found.rows)
    return text.getvalue()


def as_json(found: Reproduction) -> str:
    """Everything as indented JSON, keys in a fixed order."""
    data = {
        "schema": SCHEMA, "broca": found.broca, "name": found.name, "shows": NAMES[found.name],
        "models": list(found.models), "settings": found.settings, "notes": list(found.notes),
        "rows": list(found.rows),
    }  # fmt: skip
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
