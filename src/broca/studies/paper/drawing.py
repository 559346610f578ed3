"""Draws reproductions from their rows alone, one figure a model where models do not mix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from broca.reports.figures import AFTER, BEFORE, INK, MUTED, TARGET, styled
from broca.studies.paper.reproduction import Reproduction, Row

_GRID = "#e4e7eb"
_LINES = ("#2b6cb0", TARGET, "#2f855a", AFTER, "#6b46c1", "#0987a0", "#97266d", MUTED, INK, BEFORE)
_SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x")
_TOTALS = ("mean", "knowledge_mean", "other_mean")
_ACROSS = 5
"""Panels beside one another."""

Rows = Sequence[Row]


def draw(reproduction: Reproduction) -> list[go.Figure]:
    """The figures of a reproduction: none where a list of names is all there is."""
    if reproduction.name not in _DRAWINGS or not reproduction.rows:
        return []
    if reproduction.name == "scale":
        return [against_size(reproduction.rows)]
    by_model = {
        model: [row for row in reproduction.rows if row["model"] == model]
        for model in reproduction.models
    }
    return [
        _titled(_DRAWINGS[reproduction.name](rows), model if len(reproduction.models) > 1 else "")
        for model, rows in by_model.items()
        if any(row.get("head") != "none" for row in rows)  # the intact model alone is no figure
    ]


def task_and_general(rows: Rows) -> go.Figure:
    """Bars: points that the task loses, with intervals, and points that the others lose."""
    return _drops(rows, [_text(row["task"]) for row in rows])


def found_and_measured(rows: Rows) -> go.Figure:
    """The same for heads found on one task and measured on another."""
    labels = [f"{row['found_on']} on {row['measured_on']}" for row in rows]
    return _drops(rows, [_text(label) for label in labels])


def cost_of_methods(rows: Rows) -> go.Figure:
    """Points lost beyond the general loss, against the rows of the search."""
    figure = go.Figure()
    for number, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        chosen = [row for row in rows if row["method"] == method]
        figure.add_trace(
            go.Scatter(
                name=_text(method),
                x=[row["rows"] for row in chosen],
                y=[100 * (row["drop"] - row.get("general_drop", 0.0)) for row in chosen],
                text=[_text(f"{row['task']}: {row['heads']}") for row in chosen],
                hovertemplate="%{text}<br>%{x} rows, %{y:.1f} points<extra></extra>",
                mode="markers",
                marker={
                    "color": _colour(number),
                    "size": 10,
                    "symbol": _SYMBOLS[number % len(_SYMBOLS)],
                    "opacity": 0.75,
                },
            )
        )
    figure.update_xaxes(title="rows of the search", gridcolor=_GRID, **_logarithmic("rows", rows))
    figure.update_yaxes(title="points lost beyond the others", gridcolor=_GRID)
    return styled(figure, height=380)


def lines_by_k(rows: Rows) -> go.Figure:
    """A panel a task: points lost with the first k heads ablated, by it, its skill and others."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    across = min(_ACROSS, len(tasks))
    down = -(-len(tasks) // across)
    figure = make_subplots(
        rows=down, cols=across, shared_yaxes="all", vertical_spacing=0.35 / down,
        subplot_titles=[_text(task) for task in tasks],
    )  # fmt: skip
    for number, task in enumerate(tasks):
        chosen = [row for row in rows if row["task"] == task]
        for column, colour, dash, label in (
            ("drop", TARGET, "solid", "the task"),
            ("same_skill_drop", _LINES[0], "dash", "its skill"),
            ("general_drop", MUTED, "dot", "the others"),
        ):
            known = [row for row in chosen if column in row]
            figure.add_trace(
                go.Scatter(
                    name=label,
                    legendgroup=label,
                    showlegend=number == 0,
                    x=[row["k"] for row in known],
                    y=[100 * row[column] for row in known],
                    error_y=_bars(known) if column == "drop" else None,
                    line={"color": colour, "dash": dash},
                ),
                row=number // across + 1,
                col=number % across + 1,
            )
    largest = max(row["k"] for row in rows)
    figure.update_xaxes(dtick=max(1, largest // 5), range=[-0.4, largest + 0.4], gridcolor=_GRID)
    figure.update_xaxes(title="heads ablated", row=down)
    figure.update_yaxes(gridcolor=_GRID)
    figure.update_yaxes(title="points lost", col=1)
    return _panels(figure, height=90 + 190 * down)


def by_head(rows: Rows) -> go.Figure:
    """Head x task: scores without the head where there is an intact row, else what is lost."""
    columns = [name for name in rows[0] if name not in ("model", "head", *_TOTALS)]
    intact = rows[0] if rows[0]["head"] == "none" else None
    shown = [row for row in rows if row["head"] != "none"] or list(rows)
    lost = [
        [100 * (row[name] if intact is None else intact[name] - row[name]) for name in columns]
        for row in shown
    ]
    figure = go.Figure(
        go.Heatmap(
            z=lost,
            x=[_text(name) for name in columns],
            y=[_text(row["head"]) for row in shown],
            text=[[f"{value:.0f}" for value in line] for line in lost],
            texttemplate="%{text}",
            hovertemplate="%{y} on %{x}: %{z:.1f} points<extra></extra>",
            colorscale=[[0, "#2b6cb0"], [0.5, "#f5f7fa"], [1, TARGET]],
            zmin=-100,  # the same colours for every model
            zmax=100,
            xgap=2,
            ygap=2,
            colorbar={"title": {"text": "points lost"}, "thickness": 12},
        )
    )
    figure.update_yaxes(autorange="reversed", automargin=True)
    return styled(figure, height=180 + 30 * len(shown))


def radar(rows: Rows) -> go.Figure:
    """A panel a list of heads, an axis a task: the intact model's scores and those without it."""
    lists = [name for name in dict.fromkeys(row["heads_of"] for row in rows) if name != "none"]
    across = min(3, len(lists))
    down = -(-len(lists) // across)
    figure = make_subplots(
        rows=down, cols=across, vertical_spacing=0.4 / down, horizontal_spacing=0.18,
        specs=[[{"type": "polar"}] * across] * down,
        subplot_titles=[_text(f"without heads of {task}") for task in lists],
    )  # fmt: skip
    for number, task in enumerate(lists):
        chosen = [row for row in rows if row["heads_of"] == task]
        axes = [_text(row["measured_on"]) for row in chosen]
        for values, name, colour in (("intact", "intact", BEFORE), ("ablated", "ablated", TARGET)):
            scores = [row[values] for row in chosen]
            figure.add_trace(
                go.Scatterpolar(
                    name=name,
                    legendgroup=name,
                    showlegend=number == 0,
                    theta=[*axes, axes[0]],
                    r=[*scores, scores[0]],
                    mode="lines",
                    fill="toself",
                    opacity=0.8,
                    line={"color": colour},
                ),
                row=number // across + 1,
                col=number % across + 1,
            )
    figure.update_polars(
        bgcolor="#ffffff",
        radialaxis={"gridcolor": _GRID, "range": [0, None], "nticks": 4, "tickfont": {"size": 9}},
        angularaxis={"gridcolor": _GRID, "linecolor": _GRID, "tickfont": {"size": 10}},
    )
    figure.update_annotations(yshift=20)
    return _panels(figure, height=110 + 300 * down).update_layout(margin={"r": 90})


def bars_by_head(rows: Rows) -> go.Figure:
    """Groups of bars: each task's score, intact and without each head."""
    return _scores(rows, "without {}")


def bars_by_list(rows: Rows) -> go.Figure:
    """Groups of bars: each task's score, intact and without each task's heads."""
    return _scores(rows, "without heads of {}")


def _scores(rows: Rows, label_of: str) -> go.Figure:
    figure = go.Figure()
    for number, label in enumerate(dict.fromkeys(row["heads"] for row in rows)):
        chosen = [row for row in rows if row["heads"] == label]
        figure.add_trace(
            go.Bar(
                name="intact" if label == "none" else _text(label_of.format(label)),
                x=[_text(row["measured_on"]) for row in chosen],
                y=[row["ablated"] for row in chosen],
                marker_color=BEFORE if label == "none" else _colour(number),
            )
        )
    figure.update_layout(barmode="group")
    figure.update_yaxes(title="score", rangemode="tozero", gridcolor=_GRID)
    return styled(figure, height=380)


def pairs(rows: Rows) -> go.Figure:
    """Pairs of heads in one group, beside what changing places gives."""
    sources = len({row["source"] for row in rows})
    labels = [
        _text(f"{row['skill']} ({row['source']})" if sources > 1 else row["skill"]) for row in rows
    ]
    figure = go.Figure(
        [
            go.Bar(
                name="pairs in one group",
                x=labels,
                y=[row["pairs_in_one_group"] for row in rows],
                marker_color=TARGET,
                text=[f"p {row['p']:.2g}" for row in rows],
                textposition="outside",
                textangle=0,
                cliponaxis=False,
            ),
            go.Bar(
                name="expected",
                x=labels,
                y=[row["expected"] for row in rows],
                marker_color=BEFORE,
            ),
        ]
    )
    figure.update_layout(barmode="group")
    figure.update_yaxes(gridcolor=_GRID)
    return styled(figure, height=340)


def against_size(rows: Rows) -> go.Figure:
    """Points lost against the model's parameters, a line a task."""
    figure = go.Figure()
    for number, task in enumerate(dict.fromkeys(row["task"] for row in rows)):
        chosen = sorted(
            (row for row in rows if row["task"] == task), key=lambda row: int(row["parameters"])
        )
        figure.add_trace(
            go.Scatter(
                name=_text(task),
                x=[row["parameters"] for row in chosen],
                y=[100 * row["drop"] for row in chosen],
                error_y=_bars(chosen),
                text=[_text(row["model"]) for row in chosen],
                hovertemplate="%{text}: %{y:.1f} points<extra></extra>",
                mode="lines+markers",
                line={"color": _colour(number)},
            )
        )
    figure.update_xaxes(title="parameters", gridcolor=_GRID, **_logarithmic("parameters", rows))
    figure.update_yaxes(title="points lost", gridcolor=_GRID)
    return styled(figure, height=420)


def _drops(rows: Rows, labels: Sequence[str]) -> go.Figure:
    figure = go.Figure(
        go.Bar(
            name="task",
            x=labels,
            y=[100 * row["drop"] for row in rows],
            error_y=_bars(rows),
            marker_color=TARGET,
        )
    )
    if any("general_drop" in row for row in rows):
        figure.add_trace(
            go.Bar(
                name="general",
                x=labels,
                y=[100 * row["general_drop"] if "general_drop" in row else None for row in rows],
                marker_color=BEFORE,
            )
        )
    figure.update_layout(barmode="group")
    figure.update_yaxes(title="points lost", gridcolor=_GRID)
    return styled(figure, height=360)


def _bars(rows: Rows) -> dict[str, Any]:
    """Intervals of drops, in points."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [100 * (row["drop_high"] - row["drop"]) for row in rows],
        "arrayminus": [100 * (row["drop"] - row["drop_low"]) for row in rows],
    }


def _logarithmic(column: str, rows: Rows) -> dict[str, Any]:
    """A logarithmic axis with round numbers written out, one at least around the values."""
    values = [float(row[column]) for row in rows if row[column] > 0]
    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    shown = [tick for tick in ticks if low / 2.5 <= tick <= high * 2.5]
    return {
        "type": "log", "tickvals": shown, "ticktext": [f"{tick:,.0f}" for tick in shown],
        "range": [float(np.log10(low)) - 0.1, float(np.log10(high)) + 0.1],
    }  # fmt: skip


def _panels(figure: go.Figure, *, height: int) -> go.Figure:
    """Styled, with small titles over the panels and the legend above all."""
    figure.update_annotations(font={"size": 12})
    styled(figure, height=height)
    figure.update_layout(
        legend={
            "orientation": "h",
            "x": 1,
            "xanchor": "right",
            "y": 1 + 45 / height,
            "yanchor": "bottom",
        },
        margin={"t": 90},
    )
    return figure


def _titled(figure: go.Figure, title: str) -> go.Figure:
    if title:
        figure.update_layout(
            title={"text": _text(title), "x": 0}, margin={"t": max(50, figure.layout.margin.t or 0)}
        )
    return figure


def _text(label: str) -> str:
    """A name as Plotly may show it, which reads some HTML."""
    return escape(label)


def _colour(number: int) -> str:
    return _LINES[number % len(_LINES)]


_DRAWINGS: MappingProxyType[str, Callable[[Rows], go.Figure]] = MappingProxyType(
    {
        "table2": task_and_general,
        "table3": found_and_measured,
        "table4": cost_of_methods,
        "table5": by_head,
        "table6": lines_by_k,
        "table7": by_head,
        "table8": by_head,
        "figure1": radar,
        "figure2": lines_by_k,
        "figure3": bars_by_head,
        "figure4": bars_by_list,
        "gqa": pairs,
        "scale": against_size,
    }
)
"""What draws each; a list of names is drawn by none."""
