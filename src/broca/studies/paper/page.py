"""Reproductions as one HTML page that needs nothing from outside."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from broca.studies.paper.drawing import draw
from broca.studies.paper.names import NAMES
from broca.studies.paper.record import Reproduction


def render_page(found: Sequence[Reproduction]) -> str:
    """Renders figures and rows, one section for each; text is escaped: tasks may hold anything."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["cell"] = cell
    environment.filters["words"] = lambda name: name.replace("_", " ")
    template = (files("broca.studies.paper") / "page.html.j2").read_text(encoding="utf-8")
    style = (files("broca.reports") / "page.css").read_text(encoding="utf-8")
    options = {"responsive": True, "displayModeBar": False}
    parts = [
        {
            "name": one.name,
            "shows": NAMES[one.name],
            "notes": one.notes,
            "rows": one.rows,
            "columns": _filled(one),
            "texts": {
                name for row in one.rows for name, value in row.items() if isinstance(value, str)
            },
            "figures": [
                Markup(
                    figure.to_html(
                        full_html=False, include_plotlyjs=False, config=options,
                        div_id=f"{one.name}-{number}",
                    )
                )
                for number, figure in enumerate(draw(one))
            ],
        }
        for one in found
    ]  # fmt: skip
    return environment.from_string(template).render(
        parts=parts,
        models=found[0].models,
        settings=found[0].settings,
        style=Markup(style),
        plotly=Markup(get_plotlyjs()),
    )


def _filled(found: Reproduction) -> tuple[str, ...]:
    """The columns that hold anything: most models have no published figures."""
    return tuple(
        name for name in found.columns
        if any(row.get(name) not in (None, "") for row in found.rows)
    )  # fmt: skip


def cell(value: Any) -> str:
    """A value of a row as the page shows it."""
    if value is None:
        return ""
    return (
        f"{value:.3f}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
