"""Reproductions as one HTML page that needs nothing from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broca.reports.filling import filled
from broca.studies.paper.drawing import draw
from broca.studies.paper.reproduction import Reproduction


def render_page(reproductions: Sequence[Reproduction]) -> str:
    """Renders figures and rows, one section for each; text is escaped: tasks may hold anything."""
    figures = {
        f"{shown.name}-{number}": figure
        for shown in reproductions
        for number, figure in enumerate(draw(shown))
    }
    parts = [
        {
            "name": shown.name,
            "shows": shown.shows,
            "notes": shown.notes,
            "rows": shown.rows,
            "columns": _filled(shown),
            "texts": {
                name for row in shown.rows for name, value in row.items() if isinstance(value, str)
            },
            "figures": [name for name in figures if name.startswith(f"{shown.name}-")],
        }
        for shown in reproductions
    ]
    return filled(
        "reproduction",
        figures,
        room="broca.studies.paper",
        parts=parts,
        models=reproductions[0].models,
        settings=reproductions[0].settings,
        cell=cell,
    )


def _filled(reproduction: Reproduction) -> tuple[str, ...]:
    """The columns that hold anything: most models have no published figures."""
    return tuple(
        name
        for name in reproduction.columns
        if any(row.get(name) not in (None, "") for row in reproduction.rows)
    )


def cell(value: Any) -> str:
    """A value of a row as the page shows it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
