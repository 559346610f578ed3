"""A stress test as one HTML page."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from broca.results.base import Interval
from broca.results.stress_test import StressTest


def render_stress_page(stress: StressTest) -> str:
    """Renders a stress test as one HTML page that needs nothing from outside; text is escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["interval"] = interval_text
    folder = files("broca.reports")
    template = environment.from_string((folder / "stress.html.j2").read_text(encoding="utf-8"))
    return template.render(
        stress=stress, style=Markup((folder / "page.css").read_text(encoding="utf-8"))
    )


def interval_text(one: Interval | None) -> str:
    """An interval in its own unit; a dash where there is none."""
    return "–" if one is None else f"{one.value:+.2f} [{one.low:+.2f}, {one.high:+.2f}]"
