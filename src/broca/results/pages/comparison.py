"""The tables and figures of a comparison of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broca.results.pages.charts import Line, LineChart, Point
from broca.results.pages.colours import SERIES
from broca.results.pages.figure import Figure
from broca.results.pages.grid import ComponentGrid, group_of
from broca.results.pages.tables import (
    Column,
    Table,
    component,
    fixed,
    interval,
    p_value,
    points,
)
from broca.results.tabular import Interval

if TYPE_CHECKING:
    from broca.results.comparison import Comparison, TaskDifferences


def difference_map(comparison: Comparison, change: TaskDifferences) -> Figure:
    """Draws differences of effects from the first model; changed components are framed."""
    model = comparison.models[0].model
    grid = ComponentGrid(
        dict(zip(comparison.components, change.differences, strict=True)),
        f"difference of effects on {comparison.response} of {change.task}",
        layers=model.layers,
        group=group_of(model),
        selected=change.changed,
        framed="changed",
        meanings=("needed more", "needed less"),
        text=f"Differences of effects on {change.task}, {change.model} minus the first model",
    )
    caption = (
        f"Effects on {change.task} in {change.model} minus those in {comparison.models[0].label}: "
        "components below zero are needed more than in the first model."
    )
    number = comparison.differences.index(change)
    return Figure("components" if number == 0 else f"components-{number}", caption, grid)


def curves(comparison: Comparison) -> Figure:
    """Draws the effect of each selected component on the first task, over the models."""
    task, models = comparison.tasks[0], comparison.models
    chosen = {name: effects for (of, name), effects in comparison.curves().items() if of == task}
    lines = tuple(
        Line(
            name, tuple(float(place) for place in range(1, len(effects) + 1)),
            tuple(map(Point.of, effects)), SERIES[number % len(SERIES)], number,
        )
        for number, (name, effects) in enumerate(chosen.items())
    )  # fmt: skip
    chart = LineChart(
        lines,
        across="model, in the order given",
        up=f"effect on {comparison.response}",
        text=f"Effects of selected components on {task} over {len(models)} models",
    )
    labels = ", ".join(f"{n} {model.label}" for n, model in enumerate(models, start=1))
    return Figure("curves", f"Effects on {task} with 95 % intervals. Models: {labels}.", chart)


def difference_table(comparison: Comparison, most: int | None = None) -> Table:
    """Returns the differences of components by significance, `most` for each model and task."""
    rows: list[tuple[Any, ...]] = []
    strong: set[int] = set()
    several = len(comparison.differences) > 1
    for line in comparison.differences:
        for column in sorted(range(len(line.p)), key=lambda column: line.p[column])[:most]:
            name = comparison.components[column]
            if name in line.changed:
                strong.add(len(rows))
            difference = Interval(line.differences[column], line.low[column], line.high[column])
            where = (line.model, line.task) if several else (None, None)
            rows.append((name, *where, difference, line.q[column], name in line.changed))
    return Table(
        "changes",
        "Differences of effects from the first model, with 95 % intervals, by significance",
        (
            component(), Column("model"), Column("task"), Column("difference", show=interval),
            Column("q", show=p_value), Column("changed"),
        ),
        tuple(rows),
        frozenset(strong),
    )  # fmt: skip


def carry_table(comparison: Comparison) -> Table:
    """Returns the table of drops without selections of other runs."""
    return Table.of(
        "carries", "Selections ablated in other models or on other tasks", comparison.carries,
        Column("ablated", "selection"), Column("in", "model"), Column("task"),
        Column("points lost", "drop", points),
        Column("share of its own selection's", "share", interval), Column("p (Holm)", "p", p_value),
        Column("needed", "carried"),
    )  # fmt: skip


def score_table(comparison: Comparison) -> Table:
    """Returns the table of scores of every model, intact and without each selection."""
    return Table.of(
        "scores", "Scores, with drops in points", comparison.scores,
        Column("model"), Column("task"),
        Column("ablated", lambda line: line.selection or "nothing"),
        Column("score", show=fixed(3)), Column("points lost", "drop", points),
    )  # fmt: skip
