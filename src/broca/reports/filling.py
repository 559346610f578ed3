"""Fills the templates of pages; text from models, tasks and files is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from broca.results.base import Interval

_OPTIONS = {"responsive": True, "displayModeBar": False}


def filled(
    template: str,
    figures: Mapping[str, go.Figure] | None = None,
    *,
    room: str = "broca.reports",
    **values: Any,
) -> str:
    """Fills a template; it may use the page's style, Plotly and the figures.

    Args:
        template: Name of the file, without `.html.j2`.
        figures: Figures by the id of their element; the template has them as `figures`.
        room: The package that holds the template.
        values: What else it uses.
    """
    text = (files(room) / f"{template}.html.j2").read_text(encoding="utf-8")
    style = (files("broca.reports") / "page.css").read_text(encoding="utf-8")
    return (
        _environment()
        .from_string(text)
        .render(
            style=Markup(style),
            plotly=Markup(get_plotlyjs() if "{{ plotly }}" in text else ""),
            figures={
                name: Markup(
                    figure.to_html(
                        full_html=False, include_plotlyjs=False, div_id=name, config=_OPTIONS
                    )
                )
                for name, figure in (figures or {}).items()
            },
            **values,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters.update(
        points=lambda value: f"{100 * value:.1f}",
        count=lambda value: f"{value:,}",
        effect=lambda value: f"{value:+.2f}",
        p=lambda value: "–" if value is None else f"{value:.2g}",
        ends=lambda ends: f"[{ends[0]:+.2f}, {ends[1]:+.2f}]",
        interval=interval_text,
        interval_in_points=_in_points,
    )
    return environment


def interval_text(interval: Interval | None) -> str:
    """An interval in its own unit; a dash where there is none."""
    if interval is None:
        return "–"
    return f"{interval.value:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]"


def _in_points(interval: Interval | None) -> str:
    if interval is None:
        return "–"
    return f"{100 * interval.value:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
