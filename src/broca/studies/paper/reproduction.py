"""A reproduction as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

from broca.results import Reproduction, encode

Row = dict[str, Any]
"""A row of a table: plain values by column."""


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
