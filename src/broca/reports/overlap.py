"""The overlap of tasks' neurons as a page with one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, TypeGuard

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from broca.results.codec import plain
from broca.results.neurons import NeuronExperiment

MEASURE = "of_larger"


def is_overlap(result: Any) -> TypeGuard[NeuronExperiment]:
    """Whether a result is that of `broca neurons overlap`."""
    return isinstance(result, NeuronExperiment) and result.command.endswith(" overlap")


def matrix(names: Sequence[str], pairs: Sequence[Mapping[str, Any]]) -> list[list[float | None]]:
    """The overlap between tasks, `(tasks, tasks)`: mean over pairs of halves, None if unknown.

    On the diagonal are the two halves of one task.

    Args:
        names: The tasks.
        pairs: Pairs of halves: `first`, `second` and `overlap`, as they are written.
    """
    position = {name: number for number, name in enumerate(names)}
    values: list[list[list[float | None]]] = [[[] for _ in names] for _ in names]
    for pair in pairs:
        i, j = (position[pair[half].rsplit("/", 1)[0]] for half in ("first", "second"))
        for a, b in {(i, j), (j, i)}:
            values[a][b].append(pair["overlap"][MEASURE])
    return [[_mean(cell) for cell in row] for row in values]


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean; unknown where a value is, or there is none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def overlap_figure(result: NeuronExperiment) -> go.Figure:
    """The matrix of overlaps between tasks."""
    overlaps = plain(result.result)
    names = list(overlaps["names"])
    shown = matrix(names, overlaps["pairs"])
    figure = go.Figure(
        go.Heatmap(
            z=shown,
            x=names,
            y=names,
            zmin=0,
            zmax=1,
            xgap=2,
            ygap=2,
            colorscale=[[0, "#f5f7fa"], [1, "#b42318"]],
            text=[["" if value is None else f"{value:.2f}" for value in row] for row in shown],
            texttemplate="%{text}",
            hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>",
            colorbar={"title": {"text": MEASURE.replace("_", " ")}, "thickness": 12},
        )
    )
    figure.update_yaxes(autorange="reversed")
    figure.update_layout(
        height=200 + 38 * len(names),
        width=260 + 62 * len(names),
        font={"family": "system-ui, sans-serif", "size": 13, "color": "#1f2933"},
        paper_bgcolor="#ffffff",
        plot_bgcolor="#ffffff",
        margin={"l": 120, "r": 20, "t": 20, "b": 100},
    )
    return figure


def overlap_page(result: NeuronExperiment) -> str:
    """A self-contained HTML page with the matrix of overlaps between tasks."""
    title = escape(f"Commonality neurons of {result.model.name}")
    body = overlap_figure(result).to_html(full_html=False, include_plotlyjs=False, div_id="overlap")
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
        f"<body style='font-family:system-ui,sans-serif'><h1>{title}</h1>"
        "<p>Share of the larger set of located neurons that two sets have in common. On the "
        "diagonal: two halves of one data set; elsewhere halves of two, mean of four pairs.</p>"
        f"<script>{get_plotlyjs()}</script>{body}</body></html>\n"
    )
