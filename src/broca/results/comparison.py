"""The comparison of models or runs, `comparison.json`, with its tables and figures."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from broca.options.base import Seed
from broca.results.base import AblationInfo, Interval, ModelInfo, Result, joined_names
from broca.results.pages.charts import Figure, LineChart, Series
from broca.results.pages.grid import ComponentGrid, counted
from broca.results.pages.tables import Column, Table, component, fixed, interval, p_value, points
from broca.results.pages.template import filled

Carried = Literal["yes", "in part", "no", "undecided"]
"""Whether another model, or another task, needs a selection too."""


_SHOWN = 10
"""Number of components that a terminal shows for each model and task."""


@dataclass(frozen=True)
class ComparedModel:
    """A model of the comparison.

    Attributes:
        label: Name of the model in the comparison.
        model: The model.
        revision: Revision on the hub, if one was given.
    """

    label: str
    model: ModelInfo
    revision: str | None = None


@dataclass(frozen=True)
class ComparedSelection:
    """Components that a run, an atlas or the caller selected.

    Attributes:
        label: Name of the selection in the comparison.
        model: Label of the model in which they were selected; None if the caller named them.
        task: The task for which they were selected; None if the caller named them.
        components: Names of the components.
    """

    label: str
    model: str | None
    task: str | None
    components: tuple[str, ...]


@dataclass(frozen=True)
class SelectionScore:
    """The score of a model on the report items of a task, intact or with a selection ablated.

    Attributes:
        model: Label of the model.
        task: The task.
        selection: Label of the selection; None for the intact model.
        score: The score.
        drop: The loss of score from the intact model; None for the intact model.
    """

    model: str
    task: str
    selection: str | None
    score: float
    drop: Interval | None = None


@dataclass(frozen=True)
class Carry:
    """A test whether a task of a model needs the selection of another run.

    Attributes:
        selection: Label of the selection.
        model: Label of the model in which it was ablated.
        task: The task that was measured.
        drop: The loss of score of the task.
        own_selection: Label of the selection of this model and task; None without one.
        share: `drop` divided by the drop without the own selection; None without one.
        p: Two-sided p-value of no drop, Holm-corrected over all tests of this kind.
        carried: The answer; docs/compare.md has the rule.
    """

    selection: str
    model: str
    task: str
    drop: Interval
    own_selection: str | None
    share: Interval | None
    p: float
    carried: Carried


@dataclass(frozen=True)
class TaskEffects:
    """Effect of every component on a task of one model, in the order of the components.

    Attributes:
        model: Label of the model.
        task: The task.
        effects: Mean change of the response when the component is ablated together with random
            others.
        low: Lower ends of the intervals, each of its own component.
        high: Upper ends of the intervals.
    """

    model: str
    task: str
    effects: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class TaskDifferences:
    """Differences of effects between a model and the first model, in the order of the components.

    Attributes:
        model: Label of the model.
        task: The task.
        differences: Effects minus the effects in the first model, on the same masks and items.
        low: Lower ends of the intervals, each of its own component.
        high: Upper ends of the intervals.
        p: Two-sided p-values of no difference.
        q: q-values over the components (Benjamini and Hochberg).
        changed: Names of the components whose q is at most the level, by decreasing difference.
    """

    model: str
    task: str
    differences: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    changed: tuple[str, ...]


class Comparison(Result, file="comparison.json", page="comparison.html", verb="broca compare"):
    """The differences between models of one architecture, measured on the same masks and items.

    Attributes:
        models: The models; differences are from the first.
        tasks: The tasks on which all models were measured.
        components: Names of the components.
        ablation: How components were ablated.
        response: Response in which effects are measured.
        seed: Seed of masks, items and resampling.
        level: Level of tests and intervals, and false discovery rate of changed components.
        rows: Number of rows with a random mask for each model and task.
        items: Number of items of each task in these rows.
        report_items: Number of items of each task on which scores are measured.
        mask_size: Approximate number of components that a random mask ablates.
        effects: Effects, model by model and task by task.
        differences: Differences from the first model.
        selections: The sets that were ablated as a whole.
        scores: Scores of the intact models and without each selection.
        carries: Tests whether tasks need the selections of other runs.
        notes: Notes for the reader.
    """

    kind: Literal["comparison"] = "comparison"
    models: tuple[ComparedModel, ...]
    tasks: tuple[str, ...]
    components: tuple[str, ...]
    ablation: AblationInfo
    response: str
    seed: Seed
    level: float
    rows: int
    items: dict[str, int]
    report_items: dict[str, int]
    mask_size: int
    effects: tuple[TaskEffects, ...]
    differences: tuple[TaskDifferences, ...]
    selections: tuple[ComparedSelection, ...] = ()
    scores: tuple[SelectionScore, ...] = ()
    carries: tuple[Carry, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def selected(self) -> tuple[str, ...]:
        """The distinct components of all selections."""
        names = (name for selection in self.selections for name in selection.components)
        return tuple(dict.fromkeys(names))

    def curves(self) -> dict[tuple[str, str], tuple[Interval, ...]]:
        """Returns the effect of each selected component over the models, by task and component."""
        return {
            (task, name): tuple(
                Interval(line.effects[column], line.low[column], line.high[column])
                for line in self.effects
                if line.task == task
            )
            for task in self.tasks
            for column, name in enumerate(self.components)
            if name in self.selected
        }

    @property
    def headline(self) -> str:
        """How many components changed, as the page begins."""
        first, *later = self.models
        if not self.differences:
            return f"{first.model.short_name}: {self.overlap}"
        count = len({name for line in self.differences for name in line.changed})
        what = f"{count or 'No'} component{'s' * (count != 1)}"
        where = later[0].label if len(later) == 1 else "later models"
        return f"{what} changed from {first.label} to {where}"

    @property
    def overlap(self) -> str:
        """The overlap of the selections, and which of them other tasks need."""
        sets = [set(selection.components) for selection in self.selections]
        if len(sets) < 2:
            return "the same weights, with fewer than two selections to compare"
        shared, every = set.intersection(*sets), set().union(*sets)
        carried = [
            f"{line.task} also needs the set of {line.selection}"
            for line in self.carries
            if line.carried == "yes"
        ]
        return "; ".join([f"the sets share {len(shared)} of {len(every)} components", *carried])

    def figures(self) -> tuple[Figure, ...]:
        """Returns maps of differences, and curves of selected components over three models."""
        maps = tuple(difference_map(self, line) for line in self.differences)
        return (*maps, curves(self)) if len(self.models) > 2 and self.selected else maps

    def page(self) -> str:
        """Renders the comparison."""
        figures, maps = self.figures(), len(self.differences)
        return filled(
            "comparison", comparison=self, counted=counted(self.components),
            maps=figures[:maps], lines=next(iter(figures[maps:]), None),
            changed=any(line.changed for line in self.differences),
            least=min((q for line in self.differences for q in line.q), default=1.0),
            tables=Table.by_name(difference_table(self), carry_table(self), score_table(self)),
        )  # fmt: skip

    def terminal(self) -> Iterator[str | Table]:
        """Yields the most significant differences, scores and carried selections."""
        yield f"{self.headline} ({self.ablation.described})."
        for line in self.differences:
            if line.changed:
                yield f"changed on {line.task} in {line.model}: {joined_names(line.changed)}"
        yield from (difference_table(self, _SHOWN), score_table(self), carry_table(self))
        models, tasks = len(self.models), len(self.tasks)
        yield (
            f"{models} model{'s' * (models != 1)}, {tasks} task{'s' * (tasks != 1)}, "
            f"{self.rows:,} rows for each, seed {self.seed}"
        )
        yield from (f"note: {note}" for note in self.notes)

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each component, model and task."""
        changes = {(line.model, line.task): line for line in self.differences}
        lines = []
        for line in self.effects:
            change = changes.get((line.model, line.task))
            for n, name in enumerate(self.components):
                lines.append({
                    "component": name, "model": line.model, "task": line.task,
                    "effect": line.effects[n], "low": line.low[n], "high": line.high[n],
                    "difference": change and change.differences[n],
                    "difference_low": change and change.low[n],
                    "difference_high": change and change.high[n],
                    "p": change and change.p[n], "q": change and change.q[n],
                    "changed": change and name in change.changed,
                })  # fmt: skip
        return lines


def difference_map(comparison: Comparison, change: TaskDifferences) -> Figure:
    """Draws differences of effects from the first model; changed components are framed."""
    grid = ComponentGrid(
        dict(zip(comparison.components, change.differences, strict=True)),
        f"difference of effects on {comparison.response} of {change.task}",
        model=comparison.models[0].model, selected=change.changed,
        framed="changed", meanings=("needed more", "needed less"),
    )  # fmt: skip
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
        Series.line(number, name, tuple(enumerate(effects, start=1)))
        for number, (name, effects) in enumerate(chosen.items())
    )
    chart = LineChart(
        lines, across="model, in the order given", up=f"effect on {comparison.response}"
    )
    labels = ", ".join(f"{n} {model.label}" for n, model in enumerate(models, start=1))
    return Figure("curves", f"Effects on {task} with intervals. Models: {labels}.", chart)


def difference_table(comparison: Comparison, most: int | None = None) -> Table:
    """Returns the differences of components by significance, `most` for each model and task."""
    rows: list[tuple[Any, ...]] = []
    several = len(comparison.differences) > 1
    for line in comparison.differences:
        where = (line.model, line.task) if several else (None, None)
        columns = (line.p, line.q, comparison.components, line.differences, line.low, line.high)
        by_p = sorted(zip(*columns, strict=True), key=lambda cells: cells[0])
        for _, q, name, *difference in by_p[:most]:
            rows.append((name, *where, Interval(*difference), q, name in line.changed))
    return Table(
        "changes",
        "Differences of effects from the first model, with intervals, by significance",
        (
            component(), Column("model"), Column("task"), Column("difference", show=interval),
            Column("q", show=p_value), Column("changed"),
        ),
        tuple(rows),
        frozenset(number for number, row in enumerate(rows) if row[-1]),
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
