"""Fills the page: figures and tables of one result, with everything it needs inside."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from broca.reports.figures import before_after, heatmap
from broca.reports.verification import render_verification
from broca.results.localization import Localization
from broca.results.stress_test import StressTest
from broca.results.verification import Verification

TABLE_LINES = 20
"""Lines of the ranking table; the heatmap shows every head."""


def render_html(
    result: Localization,
    verification: Verification | None = None,
    stress: StressTest | None = None,
) -> str:
    """Renders a result as one HTML page that needs nothing from outside.

    `verification` is a later one, such as `broca verify` makes; the result's own by default. A
    stress test is summed up; `stress.html`, in the same folder, has its numbers.
    Names of models, tasks and heads are escaped: they come from files and may hold anything.
    """
    folder = files("broca.reports")
    verification = verification or result.verification
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["points"] = lambda value: f"{100 * value:.1f}"
    environment.filters["count"] = lambda value: f"{value:,}"
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    figures = {"heatmap": heatmap(result), "bars": before_after(result.verification)}
    options = {"responsive": True, "displayModeBar": False}
    return template.render(
        result=result,
        shown=result.ranking[:TABLE_LINES],
        verification=Markup(
            "" if verification.verdict is None else render_verification(verification)
        ),
        stress=stress,
        style=Markup((folder / "page.css").read_text(encoding="utf-8")),
        plotly=Markup(get_plotlyjs()),
        figures={
            name: Markup(
                figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=options)
            )
            for name, figure in figures.items()
        },
    )
