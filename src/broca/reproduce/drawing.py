"""Draws reproductions from their rows alone, one figure a model where models do not mix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

import plotly.graph_objects as go

from broca.report.figures import AFTER, BEFORE, INK, MUTED, TARGET, styled
from broca.reproduce.record import Reproduction, Row

_GRID = "#e4e7eb"
_LINES = ("#2b6cb0", TARGET, "#2f855a", AFTER, "#6b46c1", "#0987a0", "#97266d", MUTED, INK, BEFORE)
_TOTALS = ("mean", "knowledge_mean", "other_mean")

Rows = Sequence[Row]


def draw(found: Reproduction) -> list[go.Figure]:
    """The figures of a reproduction: none where a list of names is all there is."""
    if found.name not in _DRAWINGS or not found.rows:
        return []
    if found.name == "scale":
        return [against_size(found.rows)]
    by_model = {
        model: [one for one in found.rows if one["model"] == model] for model in found.models
    }
    return [
        _titled(_DRAWINGS[found.name](rows), model if len(found.models) > 1 else "")
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
        own = [row for row in rows if row["method"] == method]
        figure.add_trace(
            go.Scatter(
                name=_text(method),
                x=[row["rows"] for row in own],
                y=[100 * (row["drop"] - row.get("general_drop", 0.0)) for row in own],
                text=[_text(f"{row['task']}: {row['heads']}") for row in own],
                hovertemplate="%{text}<br>%{x} rows, %{y:.1f} points<extra></extra>",
                mode="markers",
                marker={"color": _colour(number), "size": 10},
            )
        )
    figure.update_xaxes(title="rows of the search", type="log", gridcolor=_GRID)
    figure.update_yaxes(title="points lost beyond the others", gridcolor=_GRID)
    return styled(figure, height=380)


def lines_by_k(rows: Rows) -> go.Figure:
    """Points lost with the first k heads ablated: the task, its skill (dashed), others (dotted)."""
    figure = go.Figure()
    for number, task in enumerate(dict.fromkeys(row["task"] for row in rows)):
        own = [row for row in rows if row["task"] == task]
        for column, dash, label in (
            ("drop", "solid", ""),
            ("same_skill_drop", "dash", ", same skill"),
            ("general_drop", "dot", ", others"),
        ):
            drawn = [row for row in own if column in row]
            if drawn:
                figure.add_trace(
                    go.Scatter(
                        name=_text(task + label),
                        legendgroup=_text(task),
                        x=[row["k"] for row in drawn],
                        y=[100 * row[column] for row in drawn],
                        line={"color": _colour(number), "dash": dash},
                        visible=True if column == "drop" or len(own) == len(rows) else "legendonly",
                    )
                )
    figure.update_xaxes(title="heads ablated", dtick=1, gridcolor=_GRID)
    figure.update_yaxes(title="points lost", gridcolor=_GRID)
    return styled(figure, height=460)


def by_head(rows: Rows) -> go.Figure:
    """Head x task: scores without the head where there is an intact row, else what is lost."""
    columns = [one for one in rows[0] if one not in ("model", "head", *_TOTALS)]
    intact = rows[0] if rows[0]["head"] == "none" else None
    shown = [row for row in rows if row["head"] != "none"] or list(rows)
    lost = [
        [100 * (row[one] if intact is None else intact[one] - row[one]) for one in columns]
        for row in shown
    ]
    figure = go.Figure(
        go.Heatmap(
            z=lost,
            x=[_text(one) for one in columns],
            y=[_text(row["head"]) for row in shown],
            text=[[f"{value:.0f}" for value in line] for line in lost],
            texttemplate="%{text}",
            hovertemplate="%{y} on %{x}: %{z:.1f} points<extra></extra>",
            colorscale=[[0, "#2b6cb0"], [0.5, "#f5f7fa"], [1, TARGET]],
            zmid=0,
            xgap=2,
            ygap=2,
            colorbar={"title": {"text": "points lost"}, "thickness": 12},
        )
    )
    figure.update_yaxes(autorange="reversed", automargin=True)
    return styled(figure, height=180 + 30 * len(shown))


def radar(rows: Rows) -> go.Figure:
    """One closed line for the intact model and one for each task's heads, an axis a task."""
    figure = go.Figure()
    for number, label in enumerate(dict.fromkeys(row["heads_of"] for row in rows)):
        own = [row for row in rows if row["heads_of"] == label]
        axes = [_text(row["measured_on"]) for row in own]
        values = [row["ablated"] for row in own]
        figure.add_trace(
            go.Scatterpolar(
                name="intact" if label == "none" else _text(f"without heads of {label}"),
                theta=[*axes, axes[0]],
                r=[*values, values[0]],
                line={"color": INK if label == "none" else _colour(number)},
            )
        )
    figure.update_polars(radialaxis={"gridcolor": _GRID, "range": [0, None]})
    return styled(figure, height=520)


def bars_by_heads(rows: Rows) -> go.Figure:
    """Groups of bars: each task's score, intact and without each head or list of heads."""
    figure = go.Figure()
    for number, label in enumerate(dict.fromkeys(row["heads"] for row in rows)):
        own = [row for row in rows if row["heads"] == label]
        figure.add_trace(
            go.Bar(
                name="intact" if label == "none" else _text(f"without {label}"),
                x=[_text(row["measured_on"]) for row in own],
                y=[row["ablated"] for row in own],
                marker_color=BEFORE if label == "none" else _colour(number),
            )
        )
    figure.update_layout(barmode="group")
    figure.update_yaxes(title="score", rangemode="tozero", gridcolor=_GRID)
    return styled(figure, height=380)


def pairs(rows: Rows) -> go.Figure:
    """Pairs of heads in one group, beside what changing places gives."""
    labels = [_text(f"{row['skill']} ({row['source']})") for row in rows]
    figure = go.Figure(
        [
            go.Bar(
                name="pairs in one group",
                x=labels,
                y=[row["pairs_in_one_group"] for row in rows],
                marker_color=TARGET,
                text=[f"p {row['p']:.2g}" for row in rows],
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
        own = sorted(
            (row for row in rows if row["task"] == task), key=lambda row: int(row["parameters"])
        )
        figure.add_trace(
            go.Scatter(
                name=_text(task),
                x=[row["parameters"] for row in own],
                y=[100 * row["drop"] for row in own],
                error_y=_bars(own),
                text=[_text(row["model"]) for row in own],
                hovertemplate="%{text}: %{y:.1f} points<extra></extra>",
                mode="lines+markers",
                line={"color": _colour(number)},
            )
        )
    figure.update_xaxes(title="parameters", type="log", gridcolor=_GRID)
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


def _titled(figure: go.Figure, title: str) -> go.Figure:
    if title:
        figure.update_layout(title={"text": _text(title), "x": 0}, margin={"t": 50})
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
        "figure3": bars_by_heads,
        "figure4": bars_by_heads,
        "gqa": pairs,
        "scale": against_size,
    }
)
"""What draws each; a list of names is drawn by none."""
