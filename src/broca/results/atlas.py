"""An atlas: every component's effect on every task, `atlas.json`, with its tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from broca.options.base import Seed
from broca.results.base import AblationInfo, Interval, ModelInfo, Result, joined_names
from broca.results.pages.charts import Figure, Matrix
from broca.results.pages.drawing import level
from broca.results.pages.grid import ComponentGrid, counted, noun
from broca.results.pages.tables import Column, Table, component, fixed, interval
from broca.results.pages.template import filled

EffectRows = tuple[tuple[float, ...], ...]
"""A matrix, tasks x components, row by row."""

MOST_COLUMNS = 120
"""Maximum number of visible columns of the matrix on a page; those without a significant effect
come last."""

_EXTREME = 0.995
"""Quantile of the effects at which the colour scale ends, so that an outlier does not fade the
others."""

_ZERO = 81
"""Character code of a cell without effect in a view; steps below zero have smaller codes."""


@dataclass(frozen=True)
class AtlasCost:
    """The cost of an atlas.

    Attributes:
        rows: Number of (mask, item) rows under masks, the intact mask and the pilot included.
        scoring_rows: Number of rows of the intact model in the tasks' own metrics.
        tokens: Number of tokens that the model read or generated, padding excluded.
        wall_s: Seconds from the loaded model to the atlas.
        measured: Number of rows of both kinds that were not in the journal yet.
    """

    rows: int
    scoring_rows: int
    tokens: int
    wall_s: float
    measured: int


@dataclass(frozen=True)
class AtlasTask:
    """A task, a row of the matrix.

    Attributes:
        name: The task.
        capability: The capability that it measures.
        metric: Its main metric.
        intact: Score of the intact model on all its items of the search.
        items: Number of the items on which the masks were measured.
        at_chance: Whether the intact model is at chance. The task then shows no damage and counts
            neither as a task that is hurt nor as a control.
        change: Mean change of the response under the random masks.
        explained: Share of the response's variance on held-out masks that the effects explain.
    """

    name: str
    capability: str
    metric: str
    intact: float
    items: int
    at_chance: bool
    change: float
    explained: float


@dataclass(frozen=True)
class UniversalComponent:
    """A component that most tasks need to about the same degree (docs/atlas.md has the rule).

    Attributes:
        name: Name, such as `L0H3`.
        effect: Mean effect over the tasks that the model can do.
        hurts: The tasks that are hurt when it is ablated.
        effects: Effect on every task.
    """

    name: str
    effect: float
    hurts: tuple[str, ...]
    effects: dict[str, float]


@dataclass(frozen=True)
class SelectedComponent:
    """A component that a task needs more than the other tasks do.

    Attributes:
        name: Name, such as `L0H3`.
        effect: Effect on the task.
        ci: 90 % interval of the effect.
        contrast: The effect on the task minus the mean effect on the tasks of other capabilities.
        contrast_ci: 90 % interval of the contrast.
    """

    name: str
    effect: float
    ci: tuple[float, float]
    contrast: float
    contrast_ci: tuple[float, float]


@dataclass(frozen=True)
class Selection:
    """The components that a task needs more than the others do, by a screen of single components.

    Attributes:
        task: The task.
        controls: The tasks of other capabilities with which it was compared.
        components: At most k components, by decreasing contrast.
        reason: Why no component is selected; empty otherwise.
    """

    task: str
    controls: tuple[str, ...]
    components: tuple[SelectedComponent, ...]
    reason: str


@dataclass(frozen=True)
class Cluster:
    """Components with similar effects over the tasks.

    Attributes:
        components: Names of the components, similar ones beside each other.
        effects: Mean effect on every task.
    """

    components: tuple[str, ...]
    effects: dict[str, float]


class Atlas(Result, file="atlas.json", page="atlas.html", verb="broca atlas"):
    """The effect of every component on every task, with selections and clusters.

    Attributes:
        model: The model.
        tasks: Rows of the matrix, tasks with similar effects beside each other.
        components: Columns of the matrix, components with similar effects beside each other;
            components without a significant effect come last.
        effects: Change of the response when the component is ablated together with the others of a
            random mask; negative = the task needs it.
        low: Lower ends of the 90 % intervals.
        high: Upper ends of the 90 % intervals.
        universal: Components that most tasks need to about the same degree, worst first.
        selections: The selected components of each task, in the order of `tasks`.
        clusters: Clusters of the components that significantly hurt a task.
        task_clusters: Clusters of the tasks.
        response: Response in which effects are measured.
        kinds: Kinds of components, such as `heads`.
        ablation: How components were ablated.
        masks: Number of random masks from which effects were estimated.
        share: Mean share of components that a mask ablates, chosen by the pilot.
        least: Smallest effect that counts.
        k: Maximum number of components of a selection.
        resamples: Number of resamples of the intervals.
        shrunk: Whether effects are underestimated because there are too few masks.
        seed: Seed of all random draws.
        task_options: Task options that differ from the tasks' files.
        cost: Rows, tokens and time.
        notes: Notes for the reader.
    """

    kind: Literal["atlas"] = "atlas"
    model: ModelInfo
    tasks: tuple[AtlasTask, ...]
    components: tuple[str, ...]
    effects: EffectRows
    low: EffectRows
    high: EffectRows
    universal: tuple[UniversalComponent, ...]
    selections: tuple[Selection, ...]
    clusters: tuple[Cluster, ...]
    task_clusters: tuple[tuple[str, ...], ...]
    response: str
    kinds: str
    ablation: AblationInfo
    masks: int
    share: float
    least: float
    k: int
    resamples: int
    shrunk: bool
    seed: Seed
    task_options: dict[str, Any] = field(default_factory=dict)
    cost: AtlasCost
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = [len(self.components)] * len(self.tasks)
        for name in ("effects", "low", "high"):
            if [len(row) for row in getattr(self, name)] != shape:
                raise ValueError(f"{name} is not a matrix of tasks x components")

    def selected(self, task: str) -> tuple[str, ...]:
        """Returns the names of the components that a task needs more than the other tasks do.

        Raises:
            KeyError: The atlas has no such task.
        """
        by_task = {line.task: line.components for line in self.selections}
        return tuple(component.name for component in by_task[task])

    @property
    def headline(self) -> str:
        """How many tasks need components of their own, as the page begins."""
        needed = sum(bool(line.components) for line in self.selections)
        names = joined_names(tuple(component.name for component in self.universal))
        serve = "serves" if len(self.universal) == 1 else "serve"
        return (
            f"{needed} of {len(self.tasks)} tasks need components of their own in "
            f"{self.model.short_name}" + (f"; {names} {serve} most" if names else "")
        )

    def figures(self) -> tuple[Figure, ...]:
        """Returns its figures: the matrix, and the components within the model."""
        return matrix_figure(self), mean_grid(self)

    def page(self) -> str:
        """Renders the atlas."""
        return filled(
            "atlas", atlas=self, counted=counted(self.components), grid_figure=mean_grid(self),
            usable=sum(not task.at_chance for task in self.tasks), views=views_of(self),
            matrix=matrix_figure(self), shown=min(len(self.components), MOST_COLUMNS),
            tables=atlas_tables(self),
        )  # fmt: skip

    def terminal(self) -> Iterator[str | Table]:
        """Yields what each task needs, what all tasks need, and the cost."""
        tables = atlas_tables(self)
        one, many = noun(self.components, plural=False), noun(self.components)
        yield f"{self.headline}."
        yield tables["tasks"].pick("task|capability|intact|variance explained")
        yield tables["selections"]
        yield tables["universal"].pick("component|mean effect|tasks hurt")
        if not self.universal:
            yield f"universal: no {one} hurts most tasks to about the same degree"
        yield from (f"note: {note}" for note in self.notes)
        yield f"This is a screen of single {many}; `broca localize` tests a task's set jointly."
        yield (
            f"{len(self.components)} {self.kinds}, {self.masks:,} masks, seed {self.seed}: "
            f"{self.cost.rows:,} rows in {self.cost.wall_s:.1f} s"
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each task and component."""
        return [
            {
                "task": task.name, "capability": task.capability, "component": component,
                "effect": effect, "low": low, "high": high,
                "selected": component in self.selected(task.name),
            }
            for task, *rows in zip(self.tasks, self.effects, self.low, self.high, strict=True)
            for component, effect, low, high in zip(self.components, *rows, strict=True)
        ]  # fmt: skip


def mean_grid(atlas: Atlas) -> Figure:
    """Draws the model's components by mean effect over the tasks that the model can do."""
    grid = ComponentGrid(
        _means(atlas),
        f"effect of ablating it on {atlas.response}, mean over tasks",
        model=atlas.model, selected=tuple(_selected(atlas)),
        universal=tuple(part.name for part in atlas.universal),
        framed="a task needs it beyond the others", span=_span(atlas),
    )  # fmt: skip
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
    tasks = tuple(task.name for task in atlas.tasks)
    effects = tuple(row[:MOST_COLUMNS] for row in atlas.effects)
    label = f"effect of ablating it on {atlas.response}"
    chart = Matrix(tasks, names, effects, _span(atlas), label, framed=framed)
    caption = (
        "Similar rows and columns are next to each other; components without a significant effect "
        "come last."
    )
    return Figure("matrix", caption, chart)


def atlas_tables(atlas: Atlas) -> dict[str, Table]:
    """Returns the tables of an atlas by name."""

    def effect_on(task: AtlasTask) -> Column:
        return Column(task.name, lambda line: line.effects[task.name], interval)

    by_task = tuple(map(effect_on, atlas.tasks))
    selections: list[tuple[Any, ...]] = []
    for line in atlas.selections:
        for part in line.components:
            effect = Interval(part.effect, *part.ci)
            contrast = Interval(part.contrast, *part.contrast_ci)
            selections.append((line.task, part.name, effect, contrast, None))
        if not line.components:
            selections.append((line.task, "", None, None, line.reason))
    return Table.by_name(
        Table.of(
            "universal", "Universal components, with their effect on every task", atlas.universal,
            component("name"), Column("mean effect", "effect", interval),
            Column("tasks hurt", lambda part: len(part.hurts)), *by_task,
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
        Table.of(
            "clusters",
            "Clusters of components with similar effects, with their mean effect on every task",
            atlas.clusters, Column("components", lambda line: " ".join(line.components)), *by_task,
        ),
        Table.of(
            "tasks",
            "Tasks; variance explained is that of single rows on masks held out of the estimate",
            atlas.tasks,
            Column("task", "name"), Column("capability"), Column("metric"),
            Column("intact", show=fixed(3)),
            Column("at chance", lambda task: "(chance)" if task.at_chance else None),
            Column("items"), Column("mean change", "change", interval),
            Column("variance explained", "explained", fixed(2)),
        ),
    )  # fmt: skip


def views_of(atlas: Atlas) -> list[dict[str, Any]]:
    """Returns the views of the picture: the mean and every task, as steps of colour."""
    span, means = _span(atlas), _means(atlas)
    views: list[dict[str, Any]] = []
    if None not in means.values():
        views.append({
            "name": "mean over tasks", "steps": _steps(list(means.values()), span),
            "framed": sorted(_selected(atlas)), "unit": f"{atlas.response}, mean over tasks",
        })  # fmt: skip
    for task, row in zip(atlas.tasks, atlas.effects, strict=True):
        views.append({
            "name": task.name, "steps": _steps(row, span),
            "framed": list(atlas.selected(task.name)), "unit": f"{atlas.response} in {task.name}",
        })  # fmt: skip
    if views:
        views[0]["names"] = atlas.components
    return views


def _selected(atlas: Atlas) -> dict[str, None]:
    """Returns the distinct components of all selections."""
    return dict.fromkeys(part.name for line in atlas.selections for part in line.components)


def _means(atlas: Atlas) -> dict[str, float | None]:
    """Returns the mean effect of every component over the tasks that the model can do."""
    rows = [row for task, row in zip(atlas.tasks, atlas.effects, strict=True) if not task.at_chance]
    if not rows:
        return dict.fromkeys(atlas.components)
    return {
        name: sum(values) / len(rows)
        for name, values in zip(atlas.components, zip(*rows, strict=True), strict=True)
    }


def _steps(values: Sequence[float | None], span: float) -> str:
    return "".join(chr(_ZERO + (level(value, span) or 0)) for value in values)


def _span(atlas: Atlas) -> float:
    sizes = sorted(abs(value) for row in atlas.effects for value in row)
    return sizes[int(_EXTREME * (len(sizes) - 1))] or 1.0 if sizes else 1.0
