"""Fills the templates of pages; text from models, tasks and files is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from broca.reports import tables
from broca.reports.colours import style_sheet
from broca.reports.drawing import svg
from broca.reports.figure import Figure

_PACKAGES = ("broca.reports", "broca.explorer", "broca.studies.paper")
"""The packages with templates; every name is unique among them."""


class Contents:
    """The sections of a page, in the order in which they are written."""

    def __init__(self) -> None:
        self.sections: list[tuple[str, str]] = []

    def add(self, name: str, title: str) -> str:
        """Adds a section and returns its title."""
        self.sections.append((name, title))
        return title


def filled(template: str, **values: Any) -> str:
    """Fills a template; the resulting page is self-contained.

    Args:
        template: Name of the file, without `.html.j2`.
        values: The values of its variables.
    """
    return _environment().get_template(f"{template}.html.j2").render(
        contents=Contents(),
        source=lambda name: Markup(_source(name)),
        colours=Markup(style_sheet()),
        **values,
    )  # fmt: skip


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "points": tables.points, "count": tables.count, "interval": tables.interval,
        "p": tables.p_value, "drawn": _drawn, "stated": _stated, "as_data": _as_data,
    }  # fmt: skip
    return environment


def _source(name: str) -> str:
    for package in _PACKAGES:
        file = files(package) / name
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise LookupError(f"no package has the file {name}")


def _drawn(figure: Figure) -> Markup:
    """Returns the figure as SVG, whose text is already escaped."""
    return Markup(svg(figure.draw()))


def _stated(settings: Mapping[str, Any]) -> list[str]:
    """Returns settings as names and values, without those that are None."""
    named = [
        (name.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else value)
        for name, value in settings.items()
        if value is not None and value not in ("", [], (), {})
    ]
    return [f"{name} {value}" for name, value in named]


def _as_data(text: str) -> Markup:
    """Escapes text within a script element of data, so that it cannot end the element."""
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c"))
