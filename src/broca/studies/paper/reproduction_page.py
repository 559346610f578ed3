"""Renders reproductions as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broca.reports import Column, Table, filled
from broca.results import Reproduction
from broca.studies.paper.drawing import draw


def render_page(reproductions: Sequence[Reproduction]) -> str:
    """Renders figures and rows, a section for each reproduction; text is escaped."""
    return filled(
        "reproduction",
        parts=[
            {
                "name": shown.name,
                "shows": shown.shows,
                "notes": shown.notes,
                "figures": draw(shown),
                "rows": row_table(shown),
            }
            for shown in reproductions
        ],
        models=reproductions[0].models,
        settings=reproductions[0].settings,
    )


def row_table(reproduction: Reproduction) -> Table:
    """Returns the rows in the columns with values: most models have no published figures."""
    names = [
        name
        for name in reproduction.columns
        if any(row.get(name) not in (None, "") for row in reproduction.rows)
    ]
    words = {
        name for row in reproduction.rows for name, value in row.items() if isinstance(value, str)
    }
    return Table(
        reproduction.name,
        f"{len(reproduction.rows):,} rows of {reproduction.name}",
        tuple(Column(name.replace("_", " "), cell, words=name in words) for name in names),
        tuple(tuple(row.get(name) for name in names) for row in reproduction.rows),
    )


def cell(value: Any) -> str:
    """Returns a value of a row as the page shows it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
