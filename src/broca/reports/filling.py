"""Fills the template of a page with everything that it needs inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

_OPTIONS = {"responsive": True, "displayModeBar": False}


def fill(
    room: str,
    template: str,
    values: Mapping[str, Any],
    *,
    filters: Mapping[str, Callable[..., str]] | None = None,
) -> str:
    """Renders a template of a room as a page that loads nothing; its values are escaped.

    Args:
        room: The package that holds the template, such as `broca.reports`.
        template: Name of the template's file.
        values: What it shows; `style` and `plotly` are added.
        filters: How it writes values, by the names that the template uses.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= filters or {}
    text = (files(room) / template).read_text(encoding="utf-8")
    style = (files("broca.reports") / "page.css").read_text(encoding="utf-8")
    return environment.from_string(text).render(
        **values, style=Markup(style), plotly=Markup(get_plotlyjs())
    )


def embedded(figure: go.Figure, name: str) -> Markup:
    """A figure as a part of a page that holds Plotly already."""
    return Markup(
        figure.to_html(full_html=False, include_plotlyjs=False, config=_OPTIONS, div_id=name)
    )
