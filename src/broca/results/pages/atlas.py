"""The tables and figures of an atlas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broca.results.pages.charts import Matrix
from broca.results.pages.colours import level
from broca.results.pages.figure import Figure
from broca.results.pages.grid import ComponentGrid, group_of
from broca.results.pages.tables import Column, Table, component, fixed, interval
from broca.results.tabular import Interval

if TYPE_CHECKING:
    from broca.results.atlas import Atlas

MOST_COLUMNS = 120
"""Maximum number of visible columns of the matrix on a page; those without a significant effect
come last."""

_EXTREME = 0.995
"""Quantile of the effects at which the colour scale ends, so that an outlier does not fade the
others."""

_ZERO = 81
"""Character code of a cell without effect in a view; steps below zero have smaller codes."""

_SIGNED = fixed(2, sign=True)


def mean_grid(atlas: Atlas) -> Figure:
    """Draws the model's components by mean effect over the tasks that the model can do."""
    grid = ComponentGrid(
        _means(atlas),
        f"effect of ablating it on {atlas.response}, mean over tasks",
        layers=atlas.model.layers,
        group=group_of(atlas.model),
        selected=tuple(_selected(atlas)),
        universal=tuple(part.name for part in atlas.universal),
        framed="a task needs it beyond the others",
        text=f"{len(atlas.components)} components by layer",
        span=_span(atlas),
    )
    caption = "Each cell is a component of the model: layers from top to bottom."
    return Figure("components", caption, grid)


def matrix_figure(atlas: Atlas) -> Figure:
    """Draws the effects by task and component; selected components are framed."""
    names = atlas.components[:MOST_COLUMNS]
    framed = frozenset(
        (row, names.index(part.name))
        for row, line in enumerate(atlas.selections)
        for part in line.components
        if part.name in names
    )
    chart = Matrix(
        tuple(task.name for task in atlas.tasks),
        names,
        tuple(row[:MOST_COLUMNS] for row in atlas.effects),
        _span(atlas),
        f"effect of ablating it on {atlas.response}",
        framed=framed,
        text=f"Effects of {len(names)} components on {len(atlas.tasks)} tasks",
    )
    caption = (
        "Similar rows and columns are next to each other; components without a significant effect "
        "come last."
    )
    return Figure("matrix", caption, chart)


def atlas_tables(atlas: Atlas) -> dict[str, Table]:
    """Returns the tables of an atlas by name."""
    signed = fixed(3, sign=True)
    by_task = tuple(Column(task.name, show=_SIGNED) for task in atlas.tasks)
    selections: list[tuple[Any, ...]] = []
    for line in atlas.selections:
        for part in line.components:
            effect = Interval(part.effect, *part.ci)
            contrast = Interval(part.contrast, *part.contrast_ci)
            selections.append((line.task, part.name, effect, contrast, None))
        if not line.components:
            selections.append((line.task, "", None, None, line.reason))
    tables = (
        Table(
            "effects", "Effect on every task",
            (
                Column("task"), component(), Column("effect", show=signed),
                Column("90 % low", show=signed), Column("90 % high", show=signed),
            ),
            tuple(
                (task.name, *cells)
                for task, *rows in zip(
                    atlas.tasks, atlas.effects, atlas.low, atlas.high, strict=True
                )
                for cells in list(zip(atlas.components, *rows, strict=True))[:MOST_COLUMNS]
            ),
        ),
        Table(
            "universal", "Universal components, with their effect on every task",
            (component(), Column("mean effect", show=_SIGNED), Column("tasks hurt"), *by_task),
            tuple(
                (part.name, part.effect, len(part.hurts),
                 *(part.effects[task.name] for task in atlas.tasks))
                for part in atlas.universal
            ),
        ),
        Table(
            "selections",
            "Components that a task needs more than the others do, with 90 % intervals",
            (
                Column("task"), component(), Column("effect", show=interval),
                Column("contrast", show=interval), Column("why none"),
            ),
            tuple(selections),
        ),
        Table(
            "clusters",
            "Clusters of components with similar effects, with their mean effect on every task",
            (Column("components"), *by_task),
            tuple(
                (" ".join(line.components), *(line.effects[task.name] for task in atlas.tasks))
                for line in atlas.clusters
            ),
        ),
        Table.of(
            "tasks",
            "Tasks; variance explained is that of single rows on masks held out of the estimate",
            atlas.tasks,
            Column("task", "name"), Column("capability"), Column("metric"),
            Column("intact", show=fixed(3)),
            Column("at chance", lambda task: "(chance)" if task.at_chance else None),
            Column("items"), Column("mean change", "change", _SIGNED),
            Column("variance explained", "explained", fixed(2)),
        ),
    )  # fmt: skip
    return {table.name: table for table in tables}


def views_of(atlas: Atlas) -> str:
    """Returns the views of the picture: the mean and every task, as steps of colour."""
    span, means = _span(atlas), _means(atlas)
    views: list[dict[str, Any]] = []
    if None not in means.values():
        views.append({
            "name": "mean over tasks", "steps": _steps(list(means.values()), span),
            "framed": sorted(_selected(atlas)),
        })  # fmt: skip
    for task, row in zip(atlas.tasks, atlas.effects, strict=True):
        framed = list(atlas.selected(task.name))
        views.append({"name": task.name, "steps": _steps(row, span), "framed": framed})
    if views:
        views[0]["names"] = atlas.components
    return json.dumps(views)


def _selected(atlas: Atlas) -> dict[str, None]:
    """Returns the distinct components of all selections."""
    return dict.fromkeys(part.name for line in atlas.selections for part in line.components)


def _means(atlas: Atlas) -> dict[str, float | None]:
    """Returns the mean effect of every component over the tasks that the model can do."""
    rows = [row for task, row in zip(atlas.tasks, atlas.effects, strict=True) if not task.at_chance]
    if not rows:
        return dict.fromkeys(atlas.components)
    columns = zip(*rows, strict=True)
    return {
        name: sum(values) / len(rows)
        for name, values in zip(atlas.components, columns, strict=True)
    }


def _steps(values: Sequence[float | None], span: float) -> str:
    return "".join(chr(_ZERO + (level(value, span) or 0)) for value in values)


def _span(atlas: Atlas) -> float:
    sizes = sorted(abs(value) for row in atlas.effects for value in row)
    return sizes[int(_EXTREME * (len(sizes) - 1))] or 1.0 if sizes else 1.0
