"""The figures of the report, as Plotly figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from broca.results.base import Interval
from broca.results.localization import Localization, RankedComponent
from broca.results.neurons import NeuronSet
from broca.results.refit import Refit
from broca.results.stress_test import StressTest
from broca.results.verification import Verification

INK, MUTED, PAPER = "#1f2933", "#7b8794", "#ffffff"
BEFORE, AFTER, TARGET = "#9aa5b1", "#d9822b", "#b42318"
_FONT = {"family": "system-ui, -apple-system, 'Segoe UI', sans-serif", "size": 13, "color": INK}


def heatmap(result: Localization) -> go.Figure:
    """Layer x head: the effect of ablating each head, the selected ones framed."""
    return effects(result, layers=result.model.layers)


def effects(result: Localization | Refit, *, layers: int | None = None) -> go.Figure:
    """Layer x head of a ranking; as many layers as it names where the model's are not known."""
    heads = [line for line in result.ranking if line.head is not None]
    layers = layers or 1 + max((line.layer for line in result.ranking), default=0)
    width = max((line.head or 0 for line in heads), default=0) + 1
    effect: list[list[float | None]] = [[None] * width for _ in range(layers)]
    text = [[""] * width for _ in range(layers)]
    for rank, line in enumerate(result.ranking, start=1):
        if line.head is not None:
            effect[line.layer][line.head] = line.effect
            text[line.layer][line.head] = _hover(line, rank, line.name in result.selected)
    span = max((abs(line.effect) for line in heads), default=0.0) or 1.0
    figure = go.Figure(
        go.Heatmap(
            z=effect,
            text=text,
            hovertemplate="%{text}<extra></extra>",
            colorscale=[[0, TARGET], [0.5, "#f5f7fa"], [1, "#2b6cb0"]],
            zmid=0,
            zmin=-span,
            zmax=span,
            xgap=2,
            ygap=2,
            colorbar={"title": {"text": f"effect on {result.response}"}, "thickness": 12},
        )
    )
    for line in heads:
        if line.name in result.selected and line.head is not None:
            figure.add_shape(
                type="rect",
                x0=line.head - 0.5,
                x1=line.head + 0.5,
                y0=line.layer - 0.5,
                y1=line.layer + 0.5,
                line={"color": INK, "width": 2},
            )
    figure.update_xaxes(title="head", dtick=max(1, width // 16), showgrid=False, zeroline=False)
    figure.update_yaxes(
        title="layer",
        dtick=max(1, layers // 16),
        autorange="reversed",
        showgrid=False,
        zeroline=False,
    )
    return styled(figure, height=140 + 26 * min(layers, 40))


def before_after(verification: Verification) -> go.Figure:
    """Scores of the task and the others, intact and with the set ablated."""
    names = [line.task for line in verification.drops]
    figure = go.Figure(
        [
            go.Bar(
                name="intact",
                x=names,
                y=[verification.baseline[name] for name in names],
                marker_color=BEFORE,
            ),
            go.Bar(
                name="ablated",
                x=names,
                y=[verification.after[name] for name in names],
                marker_color=[TARGET if name == verification.task else AFTER for name in names],
            ),
        ]
    )
    figure.update_layout(barmode="group", legend={"orientation": "h", "y": 1.12})
    figure.update_yaxes(title="score", rangemode="tozero", gridcolor="#e4e7eb")
    return styled(figure, height=360)


def shifts(stress: StressTest) -> go.Figure:
    """What each write of a stress test moves the target by, in nats, with intervals."""
    moved = [line.transfer for line in stress.shifts]
    figure = go.Figure(
        go.Bar(
            x=[line.source for line in stress.shifts],
            y=[interval.value for interval in moved],
            error_y=error_bars(moved),
            marker_color=[TARGET, *[BEFORE] * (len(moved) - 1)],
        )
    )
    figure.update_yaxes(title="transfer, nats", gridcolor="#e4e7eb")
    return styled(figure, height=360)


def neurons_by_layer(located: NeuronSet) -> go.Figure:
    """How many selected neurons lie in every layer."""
    figure = go.Figure(
        go.Bar(x=list(located.by_layer), y=list(located.by_layer.values()), marker_color=TARGET)
    )
    figure.update_xaxes(title="layer", type="category")
    figure.update_yaxes(title="neurons", gridcolor="#e4e7eb")
    return styled(figure, height=320)


def error_bars(
    intervals: Sequence[Interval], *, scale: float = 1.0, colour: str = INK
) -> dict[str, Any]:
    """Plotly's bars from the value of each interval to its ends."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [scale * (interval.high - interval.value) for interval in intervals],
        "arrayminus": [scale * (interval.value - interval.low) for interval in intervals],
        "color": colour,
    }


def _hover(component: RankedComponent, rank: int, selected: bool) -> str:
    lines = [f"<b>{component.name}</b>", f"effect {component.effect:+.4f}", f"rank {rank}"]
    if component.ci is not None:
        lines.append(f"interval {component.ci[0]:+.4f} to {component.ci[1]:+.4f}")
    if component.frequency is not None:
        lines.append(f"selected in {component.frequency:.0%} of resamples")
    if selected:
        lines.append("selected")
    return "<br>".join(lines)


def styled(figure: go.Figure, *, height: int) -> go.Figure:
    """Gives a figure the look of the report."""
    figure.update_layout(
        height=height,
        font=_FONT,
        paper_bgcolor=PAPER,
        plot_bgcolor=PAPER,
        margin={"l": 60, "r": 20, "t": 20, "b": 50},
    )
    return figure
