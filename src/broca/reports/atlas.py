"""An atlas as one HTML page."""

from __future__ import annotations

from html import escape

import plotly.graph_objects as go

from broca.reports.figures import INK, TARGET, styled
from broca.reports.filling import filled
from broca.results.atlas import Atlas

_TICKS = 128
"""Columns up to which each is named."""

_EXTREME = 0.995
"""Quantile of the effects at which the colours end, so that one effect does not pale the rest."""


def render_atlas_page(atlas: Atlas) -> str:
    """Renders an atlas as one HTML page that needs nothing from outside; text is escaped."""
    return filled(
        "atlas",
        {"matrix": matrix_figure(atlas)},
        atlas=atlas,
        usable=sum(not task.at_chance for task in atlas.tasks),
    )


def matrix_figure(atlas: Atlas) -> go.Figure:
    """Task x component: the effects, what each task needs beyond the others framed."""
    span = _span(atlas)
    figure = go.Figure(
        go.Heatmap(
            z=atlas.effects,
            text=_hovers(atlas),
            hovertemplate="%{text}<extra></extra>",
            colorscale=[[0, TARGET], [0.5, "#f5f7fa"], [1, "#2b6cb0"]],
            zmid=0,
            zmin=-span,
            zmax=span,
            xgap=1,
            ygap=2,
            colorbar={"title": {"text": "effect"}, "thickness": 12},
        )
    )
    column = {name: place for place, name in enumerate(atlas.components)}
    for row, selection in enumerate(atlas.selections):
        for component in selection.components:
            figure.add_shape(
                type="rect",
                x0=column[component.name] - 0.5,
                x1=column[component.name] + 0.5,
                y0=row - 0.5,
                y1=row + 0.5,
                line={"color": INK, "width": 2},
            )
    named = len(column) <= _TICKS
    figure.update_xaxes(
        tickvals=list(column.values()) if named else [],
        ticktext=list(column) if named else [],
        tickangle=-90,
        tickfont={"size": 9},
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(
        tickvals=list(range(len(atlas.tasks))),
        ticktext=[escape(task.name) for task in atlas.tasks],
        autorange="reversed",
        automargin=True,
        showgrid=False,
        zeroline=False,
    )
    return styled(figure, height=160 + 30 * min(len(atlas.tasks), 40))


def _span(atlas: Atlas) -> float:
    sizes = sorted(abs(value) for row in atlas.effects for value in row)
    return sizes[int(_EXTREME * (len(sizes) - 1))] or 1.0 if sizes else 1.0


def _hovers(atlas: Atlas) -> list[list[str]]:
    universal = {component.name for component in atlas.universal}
    return [
        [
            f"<b>{name}</b> on {escape(task.name)}<br>effect {effect:+.3f}"
            f"<br>90 % interval {low:+.3f} to {high:+.3f}"
            + ("<br>universal" if name in universal else "")
            for name, effect, low, high in zip(atlas.components, effects, lows, highs, strict=True)
        ]
        for task, effects, lows, highs in zip(
            atlas.tasks, atlas.effects, atlas.low, atlas.high, strict=True
        )
    ]
