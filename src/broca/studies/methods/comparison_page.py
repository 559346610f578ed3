"""`methods.html`: quality against rows, a line for each method, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from broca.results import write_beside
from broca.results.pages import SERIES, Column, Figure, Line, LineChart, Point, Table, filled
from broca.studies.methods.summary import MethodSummary
from broca.studies.methods.text_tables import columns, texts_of

NAME = "methods.html"


def quality_figure(lines: Sequence[MethodSummary], name: str = "quality") -> Figure:
    """Draws the mean specific drop against the mean rows of a search, with intervals."""
    drawn = []
    for number, method in enumerate(dict.fromkeys(line.method for line in lines)):
        shown = sorted(
            (line for line in lines if line.method == method and line.cells and line.rows > 0),
            key=lambda line: line.rows,
        )
        points = tuple(
            Point(100 * line.specific, 100 * line.low, 100 * line.high) for line in shown
        )
        across = tuple(line.rows for line in shown)
        drawn.append(Line(method, across, points, SERIES[number % len(SERIES)], number))
    chart = LineChart(
        tuple(drawn), "rows of a search, all measured tasks together",
        "mean specific drop, points", logarithmic=True, height=360,
    )  # fmt: skip
    return Figure(name, "Mean specific drop over tasks and seeds, with 90 % intervals.", chart)


def best(lines: Sequence[MethodSummary]) -> MethodSummary | None:
    """Returns the method and budget of the largest mean specific drop; None if all refused."""
    return max((line for line in lines if line.cells), key=lambda line: line.specific, default=None)


def headline(model: str, lines: Sequence[MethodSummary]) -> str:
    """Names the method whose interval lies above those of all other methods on a model, if any."""
    leader = best(lines)
    if leader is None:
        return f"Every method refused {model}"
    others = [line.high for line in lines if line.cells and line.method != leader.method]
    if others and leader.low <= max(others):
        return f"No method is significantly ahead on {model}"
    return f"{leader.method} finds the most specific sets on {model}"


def render_page(lines: Sequence[MethodSummary]) -> str:
    """Renders summaries of methods as a self-contained page, with a section for each model."""
    models = dict.fromkeys(line.model for line in lines)
    return filled(
        "methods",
        package="broca.studies.methods",
        models=list(models),
        headline="; ".join(
            headline(model, [line for line in lines if line.model == model]) for model in models
        ),
        parts=[
            {
                "model": model,
                "best": best(shown),
                "figure": quality_figure(shown, f"quality-{number}"),
                "table": Table(
                    f"methods-{number}",
                    f"Methods on {model}: means over tasks and seeds",
                    tuple(map(Column, columns(shown))),
                    tuple(tuple(texts_of(line, shown)) for line in shown),
                ),
            }
            for number, model in enumerate(models)
            for shown in [[line for line in lines if line.model == model]]
        ],
    )


def save_page(lines: Sequence[MethodSummary], folder: Path) -> Path:
    """Writes the self-contained page.

    Raises:
        BadInput: The folder cannot be written.
    """
    path = folder / NAME
    write_beside(path, render_page(lines))
    return path
