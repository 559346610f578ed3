"""An atlas as an HTML page."""

from __future__ import annotations

import json
from collections.abc import Sequence

from broca.reports.charts import Matrix
from broca.reports.colours import level
from broca.reports.figure import Figure
from broca.reports.filling import filled
from broca.reports.grid import ComponentGrid, counted, group_of
from broca.reports.tables import COMPONENT, Column, Table, count, fixed, interval, words
from broca.results.atlas import Atlas
from broca.results.base import Interval, joined_names

MOST_COLUMNS = 120
"""Maximum number of visible columns of the matrix on a page."""

_EXTREME = 0.995
"""Quantile of the effects at which the colour scale ends, so that an outlier does not fade the
others."""

_ZERO = 81
"""Character code of a cell without effect in a view; steps below zero have smaller codes."""


def render_atlas_page(atlas: Atlas) -> str:
    """Renders an atlas as a self-contained HTML page; text is escaped."""
    return filled(
        "atlas",
        atlas=atlas,
        headline=_headline(atlas),
        counted=counted(atlas.components),
        usable=sum(not task.at_chance for task in atlas.tasks),
        grid_figure=mean_figure(atlas),
        views=_views(atlas),
        matrix=matrix_figure(atlas),
        shown=_shown(atlas),
        effects=effect_table(atlas),
        universal=universal_table(atlas),
        selections=selection_table(atlas),
        clusters=cluster_table(atlas),
        tasks=task_table(atlas),
    )


def mean_figure(atlas: Atlas) -> Figure:
    """Draws the model's components by mean effect over the tasks that the model can do."""
    selected = dict.fromkeys(part.name for line in atlas.selections for part in line.components)
    grid = ComponentGrid(
        _means(atlas),
        f"effect of ablating it on {atlas.response}, mean over tasks",
        layers=atlas.model.layers,
        group=group_of(atlas.model),
        selected=tuple(selected),
        universal=tuple(component.name for component in atlas.universal),
        framed="a task needs it beyond the others",
        text=f"{len(atlas.components)} components by layer",
        span=_span(atlas),
    )
    caption = "Each cell is a component of the model: layers from top to bottom."
    return Figure("components", caption, grid)


def matrix_figure(atlas: Atlas) -> Figure:
    """Draws the effects by task and component; selected components are framed."""
    shown = _shown(atlas)
    column = {name: place for place, name in enumerate(atlas.components[:shown])}
    framed = frozenset(
        (row, column[part.name])
        for row, line in enumerate(atlas.selections)
        for part in line.components
        if part.name in column
    )
    chart = Matrix(
        tuple(task.name for task in atlas.tasks),
        atlas.components[:shown],
        tuple(row[:shown] for row in atlas.effects),
        _span(atlas),
        f"effect of ablating it on {atlas.response}",
        framed=framed,
        text=f"Effects of {shown} components on {len(atlas.tasks)} tasks",
    )
    caption = (
        "Similar rows and columns are next to each other; components without a significant effect "
        "come last."
    )
    return Figure("matrix", caption, chart)


def effect_table(atlas: Atlas) -> Table:
    """Returns the table of the effect of every shown component on every task."""
    shown = _shown(atlas)
    signed = fixed(3, sign=True)
    return Table(
        "effects",
        "Effect on every task",
        (
            Column("task", words=True), Column("component", words=True, components=True),
            Column("effect", signed), Column("90 % low", signed), Column("90 % high", signed),
        ),
        tuple(
            (task.name, name, *values)
            for task, *rows in zip(atlas.tasks, atlas.effects, atlas.low, atlas.high, strict=True)
            for name, *values in zip(atlas.components[:shown], *(row[:shown] for row in rows),
                                     strict=True)
        ),
    )  # fmt: skip


def universal_table(atlas: Atlas) -> Table:
    """Returns the table of universal components."""
    return Table(
        "universal",
        "Universal components, with their effect on every task",
        (
            COMPONENT,
            Column("mean effect", fixed(2, sign=True)),
            Column("tasks hurt", count),
            *(Column(task.name, fixed(2, sign=True)) for task in atlas.tasks),
        ),
        tuple(
            (part.name, part.effect, len(part.hurts), *(part.effects[t.name] for t in atlas.tasks))
            for part in atlas.universal
        ),
    )


def selection_table(atlas: Atlas) -> Table:
    """Returns the table of each task's selection, or the reason for none."""
    rows: list[tuple[object, ...]] = []
    for line in atlas.selections:
        for part in line.components:
            effect = Interval(part.effect, *part.ci)
            contrast = Interval(part.contrast, *part.contrast_ci)
            rows.append((line.task, part.name, effect, contrast, None))
        if not line.components:
            rows.append((line.task, None, None, None, line.reason))
    return Table(
        "selections",
        "Components that a task needs more than the others do, with 90 % intervals",
        (
            Column("task", words=True), Column("component", words=True, components=True),
            Column("effect", interval), Column("contrast", interval),
            Column("why none", words=True),
        ),
        tuple((task, name or "", *values) for task, name, *values in rows),
    )  # fmt: skip


def cluster_table(atlas: Atlas) -> Table:
    """Returns the table of clusters of components that significantly hurt a task."""
    return Table(
        "clusters",
        "Clusters of components with similar effects, with their mean effect on every task",
        (
            Column("components", words=True),
            *(Column(task.name, fixed(2, sign=True)) for task in atlas.tasks),
        ),
        tuple(
            (" ".join(line.components), *(line.effects[task.name] for task in atlas.tasks))
            for line in atlas.clusters
        ),
    )


def task_table(atlas: Atlas) -> Table:
    """Returns the table of tasks."""
    return Table(
        "tasks",
        "Tasks; variance explained is that of single rows on masks held out of the estimate",
        (
            *words("task", "capability", "metric"), Column("intact", fixed(3)), Column("at chance"),
            Column("items", count), Column("mean change", fixed(2, sign=True)),
            Column("variance explained", fixed(2)),
        ),
        tuple(
            (
                task.name, task.capability, task.metric, task.intact,
                "(chance)" if task.at_chance else None, task.items, task.change, task.explained,
            )
            for task in atlas.tasks
        ),
    )  # fmt: skip


def _headline(atlas: Atlas) -> str:
    needed = sum(bool(line.components) for line in atlas.selections)
    universal = joined_names(tuple(component.name for component in atlas.universal))
    first = f"{needed} of {len(atlas.tasks)} tasks need components of their own"
    return f"{first} in {atlas.model.short_name}" + (
        f"; {universal} serve{'' if len(atlas.universal) > 1 else 's'} most" if universal else ""
    )


def _means(atlas: Atlas) -> dict[str, float | None]:
    """Returns the mean effect of every component over the tasks that the model can do."""
    rows = [row for task, row in zip(atlas.tasks, atlas.effects, strict=True) if not task.at_chance]
    if not rows:
        return dict.fromkeys(atlas.components)
    return {
        name: sum(values) / len(rows)
        for name, values in zip(atlas.components, zip(*rows, strict=True), strict=True)
    }


def _views(atlas: Atlas) -> str:
    """Returns the views of the picture: the mean and every task, as steps of colour."""
    span, means = _span(atlas), _means(atlas)
    selected = sorted({part.name for line in atlas.selections for part in line.components})
    views: list[dict[str, object]] = []
    if None not in means.values():
        views.append({
            "name": "mean over tasks", "steps": _steps(list(means.values()), span),
            "framed": selected,
        })  # fmt: skip
    for task, row in zip(atlas.tasks, atlas.effects, strict=True):
        framed = list(atlas.selected(task.name))
        views.append({"name": task.name, "steps": _steps(row, span), "framed": framed})
    if views:
        views[0]["names"] = atlas.components
    return json.dumps(views)


def _steps(values: Sequence[float | None], span: float) -> str:
    return "".join(chr(_ZERO + (level(value, span) or 0)) for value in values)


def _shown(atlas: Atlas) -> int:
    """Returns the columns that the matrix shows; those without a significant effect come last."""
    return min(len(atlas.components), MOST_COLUMNS)


def _span(atlas: Atlas) -> float:
    sizes = sorted(abs(value) for row in atlas.effects for value in row)
    return sizes[int(_EXTREME * (len(sizes) - 1))] or 1.0 if sizes else 1.0
