"""A comparison of models as an HTML page."""

from __future__ import annotations

from broca.reports.charts import Line, LineChart, Point
from broca.reports.colours import SERIES
from broca.reports.figure import Figure
from broca.reports.filling import filled
from broca.reports.grid import ComponentGrid, counted, group_of
from broca.reports.tables import Column, Table, fixed, interval, p_value, points, words, yes
from broca.results.base import Interval
from broca.results.comparison import Comparison, TaskDifferences


def render_comparison_page(comparison: Comparison) -> str:
    """Renders a comparison as a self-contained HTML page; text is escaped."""
    return filled(
        "comparison",
        comparison=comparison,
        maps=[difference_map(comparison, line) for line in comparison.differences],
        lines=curves(comparison) if _has_curves(comparison) else None,
        headline=_headline(comparison),
        counted=counted(comparison.components),
        changed=any(line.changed for line in comparison.differences),
        least=min((q for line in comparison.differences for q in line.q), default=1.0),
        changes=difference_table(comparison),
        carried=carry_table(comparison),
        scores=score_table(comparison),
    )


def comparison_figures(comparison: Comparison) -> tuple[Figure, ...]:
    """Returns the maps of differences, and the curves of selected components over models."""
    maps = tuple(difference_map(comparison, line) for line in comparison.differences)
    return (*maps, curves(comparison)) if _has_curves(comparison) else maps


def difference_map(comparison: Comparison, change: TaskDifferences) -> Figure:
    """Draws differences of effects from the first model; changed components are framed."""
    pairs = zip(comparison.components, change.differences, strict=True)
    model = comparison.models[0].model
    grid = ComponentGrid(
        dict(pairs),
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
    task = comparison.tasks[0]
    chosen = {name: effects for (of, name), effects in comparison.curves().items() if of == task}
    lines = tuple(
        Line(
            name,
            tuple(float(place) for place in range(1, len(effects) + 1)),
            tuple(
                Point.of(effect, title=f"{name} in {model.label}: {effect.value:+.3f}")
                for effect, model in zip(effects, comparison.models, strict=True)
            ),
            role=SERIES[number % len(SERIES)],
            number=number,
        )
        for number, (name, effects) in enumerate(chosen.items())
    )
    chart = LineChart(
        lines,
        across="model, in the order given",
        up=f"effect on {comparison.response}",
        text=f"Effects of selected components on {task} over {len(comparison.models)} models",
    )
    labels = ", ".join(f"{n} {model.label}" for n, model in enumerate(comparison.models, start=1))
    return Figure("curves", f"Effects on {task} with 95 % intervals. Models: {labels}.", chart)


def difference_table(comparison: Comparison, *, most: int | None = None) -> Table:
    """Returns the table of the differences of components, the most significant first.

    Args:
        comparison: The comparison.
        most: Maximum number of components for each model and task.
    """
    rows: list[tuple[object, ...]] = []
    strong: set[int] = set()
    several = len(comparison.differences) > 1
    for line in comparison.differences:
        order = sorted(range(len(line.p)), key=lambda column: line.p[column])
        for column in order[:most]:
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
            Column("component", words=True, components=True), *words("model", "task"),
            Column("difference", interval), Column("q", p_value), Column("changed", yes),
        ),
        tuple(rows),
        strong=frozenset(strong),
    )  # fmt: skip


def carry_table(comparison: Comparison) -> Table:
    """Returns the table of drops without selections of other runs."""
    return Table(
        "carries",
        "Selections ablated in other models or on other tasks",
        (
            *words("ablated", "in", "task"),
            Column("points lost", points), Column("share of its own selection's", interval),
            Column("p (Holm)", p_value), Column("needed", words=True),
        ),
        tuple(
            (line.selection, line.model, line.task, line.drop, line.share, line.p, line.carried)
            for line in comparison.carries
        ),
    )  # fmt: skip


def score_table(comparison: Comparison) -> Table:
    """Returns the table of scores of every model, intact and without each selection."""
    return Table(
        "scores",
        "Scores, with drops in points",
        (
            *words("model", "task", "ablated"), Column("score", fixed(3)),
            Column("points lost", points),
        ),
        tuple(
            (line.model, line.task, line.selection or "nothing", line.score, line.drop)
            for line in comparison.scores
        ),
    )  # fmt: skip


def _has_curves(comparison: Comparison) -> bool:
    return len(comparison.models) > 2 and bool(comparison.selected)


def _headline(comparison: Comparison) -> str:
    changed = {(line.model, name) for line in comparison.differences for name in line.changed}
    first = comparison.models[0].label
    if len(comparison.models) == 2:
        what = f"{len(changed) or 'No'} component{'' if len(changed) == 1 else 's'}"
        return f"{what} changed from {first} to {comparison.models[1].label}"
    return f"{len({name for _, name in changed})} components changed from {first} to later models"
