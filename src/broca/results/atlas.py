"""An atlas: every component's effect on every task, `atlas.json`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from broca.results.base import AblationInfo, ModelInfo, Result, joined_names
from broca.results.pages.atlas import (
    MOST_COLUMNS,
    atlas_tables,
    matrix_figure,
    mean_grid,
    views_of,
)
from broca.results.pages.figure import Figure
from broca.results.pages.grid import counted
from broca.results.pages.tables import Table
from broca.results.pages.template import filled

EffectRows = tuple[tuple[float, ...], ...]
"""A matrix, tasks x components, row by row."""


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
        intact: Score of the intact model on the same items.
        items: Number of items on which the masks were measured.
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


@dataclass(frozen=True)
class GroupTest:
    """A test whether selected heads of a capability share key/value groups more often than chance.

    Attributes:
        group_size: Number of query heads of a key/value group.
        sets: The heads of each capability that has a selection.
        pairs: Number of pairs of heads of the same capability in the same group.
        expected: Mean number of such pairs when heads are permuted within their layers.
        effect: `pairs` minus `expected`, in standard deviations; None if the number cannot vary.
        p: One-sided p-value of the permutation test.
        permutations: Number of permutations.
    """

    group_size: int
    sets: tuple[HeadSet, ...]
    pairs: int
    expected: float
    effect: float | None
    p: float
    permutations: int


@dataclass(frozen=True)
class HeadSet:
    """The selected heads of all tasks of one capability.

    Attributes:
        capability: The capability.
        heads: Names of the heads.
    """

    capability: str
    heads: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Atlas(Result, file="atlas.json", page="atlas.html", verb="broca atlas"):
    """The effect of every component on every task, with selections, clusters and tests.

    Attributes:
        model: The model.
        tasks: EffectRows of the matrix, tasks with similar effects beside each other.
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
        groups: The test of shared key/value groups; None if it does not apply.
        groups_note: Why the test does not apply; empty otherwise.
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
        cost: EffectRows, tokens and time.
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
    groups: GroupTest | None
    groups_note: str
    response: str
    kinds: str
    ablation: AblationInfo
    masks: int
    share: float
    least: float
    k: int
    resamples: int
    shrunk: bool
    seed: int
    cost: AtlasCost
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = [len(self.components)] * len(self.tasks)
        for name in ("effects", "low", "high"):
            if [len(row) for row in getattr(self, name)] != shape:
                raise ValueError(f"{name} is not a matrix of tasks x components")

    def effect(self, task: str, component: str) -> float:
        """Returns an effect of the matrix.

        Raises:
            KeyError: The atlas has no such task or component.
        """
        by_task = dict(zip((row.name for row in self.tasks), self.effects, strict=True))
        return dict(zip(self.components, by_task[task], strict=True))[component]

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
        yield tables["tasks"].pick("task|capability|intact|variance explained")
        yield tables["selections"]
        yield tables["universal"].pick("component|mean effect|tasks hurt")
        if not self.universal:
            yield "universal: no head hurts most tasks to about the same degree"
        yield "key/value groups: " + (
            f"not tested: {self.groups_note}"
            if self.groups is None
            else f"{self.groups.pairs} pairs of selected heads share one, "
            f"{self.groups.expected:.1f} expected, p = {self.groups.p:.2g}"
        )
        yield from (f"note: {note}" for note in self.notes)
        yield "This is a screen of single heads; `broca localize` tests a task's set jointly."
        yield f"{self.cost.rows:,} rows in {self.cost.wall_s:.1f} s"

    def summary(self) -> tuple[str, ...]:
        """Returns the universal components and the size of the measurement."""
        needed = sum(bool(line.components) for line in self.selections)
        universal = joined_names(tuple(component.name for component in self.universal))
        return (
            f"{needed} of {len(self.tasks)} tasks need components beyond the others; "
            f"universal: {universal or 'none'}",
            f"{self.model.name}: {len(self.components)} {self.kinds}, {self.masks:,} masks, "
            f"{self.cost.rows:,} rows, seed {self.seed}",
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
