"""An atlas: every component's effect on every task, `atlas.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from broca.results.base import AblationInfo, ModelInfo, Result, listed

Rows = tuple[tuple[float, ...], ...]
"""A matrix, tasks x components, row by row."""


@dataclass(frozen=True)
class AtlasCost:
    """What it took.

    Attributes:
        rows: (mask, item) rows of the measurement, intact and pilot included.
        scoring_rows: Rows in the tasks' own metrics on the intact model.
        tokens: Tokens that the model read or wrote, padding excluded.
        wall_s: Seconds from the loaded model to the atlas.
        measured: Rows of both kinds that were not in the journal yet.
    """

    rows: int
    scoring_rows: int
    tokens: int
    wall_s: float
    measured: int


@dataclass(frozen=True)
class AtlasTask:
    """One row of the matrix.

    Attributes:
        name: The task.
        capability: What it measures.
        metric: Its main metric.
        intact: Its score on the intact model, on the same items.
        items: Items that the masks were measured on.
        at_chance: Whether the intact model cannot do it: it can show no damage, and counts neither
            as a task that is hurt nor as a control.
        change: Mean change of the response under the masks.
        explained: Share of the response's variance on held-out masks that effects explain.
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
        name: Such as `L0H3`.
        effect: Its mean effect over the tasks that the model can do.
        hurts: The tasks that its loss hurts.
        effects: Its effect on every task.
    """

    name: str
    effect: float
    hurts: tuple[str, ...]
    effects: dict[str, float]


@dataclass(frozen=True)
class SelectedComponent:
    """A component that a task needs beyond the others.

    Attributes:
        name: Such as `L0H3`.
        effect: Its effect on the task.
        ci: 90 % interval of it.
        contrast: The effect minus its mean effect on the tasks of other capabilities.
        contrast_ci: 90 % interval of that.
    """

    name: str
    effect: float
    ci: tuple[float, float]
    contrast: float
    contrast_ci: tuple[float, float]


@dataclass(frozen=True)
class Selection:
    """What one task needs beyond the others, as far as a screen can tell.

    Attributes:
        task: The task.
        controls: The tasks of other capabilities that it was compared with.
        components: At most k components, the largest contrast first.
        reason: Why there are none; empty otherwise.
    """

    task: str
    controls: tuple[str, ...]
    components: tuple[SelectedComponent, ...]
    reason: str


@dataclass(frozen=True)
class Cluster:
    """Components whose effects over the tasks have the same profile.

    Attributes:
        components: Their names, neighbours alike.
        effects: Their mean effect on every task.
    """

    components: tuple[str, ...]
    effects: dict[str, float]


@dataclass(frozen=True)
class GroupTest:
    """Whether selected heads of a capability share key/value groups more often than chance.

    Attributes:
        group_size: Query heads of a key/value group.
        sets: The heads of each capability that has a selection.
        pairs: Pairs of heads of one capability in one group.
        expected: Their mean number when heads change places within their layers.
        effect: `pairs` minus `expected`, in standard deviations; None where it cannot vary.
        p: One-sided p-value of the permutation test.
        permutations: How many were tried.
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
        heads: Their names.
    """

    capability: str
    heads: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Atlas(Result, file="atlas.json", page="atlas.html", verb="broca atlas"):
    """Every component's effect on every task, and what that says.

    Attributes:
        model: The model.
        tasks: Rows of the matrix, tasks of like profiles beside one another.
        components: Columns of the matrix, components of like profiles beside one another; those
            without a sure effect come last.
        effects: Change of the response when the component is ablated besides the others of a random
            mask; negative = the task needs it.
        low: Lower ends of the 90 % intervals.
        high: Upper ends.
        universal: Components that most tasks need to about the same degree, worst first.
        selections: What each task needs beyond the others, in the order of `tasks`.
        clusters: Components that significantly hurt a task, by profile.
        task_clusters: Tasks by profile.
        groups: Whether selections keep to key/value groups; None where that means nothing.
        groups_note: Why not; empty otherwise.
        response: What effects are measured in.
        kinds: Which parts of the model are components, such as `heads`.
        ablation: What became of ablated components.
        masks: Fresh masks that effects were estimated from.
        share: Mean share of the components that a mask ablated, as the pilot chose.
        least: Least effect that counts.
        k: Maximum number of components of a selection.
        resamples: Resamples behind the intervals.
        shrunk: Whether masks were so few that effects are too small.
        seed: Seed of everything random.
        cost: What it took.
        notes: What the reader should know.
    """

    kind: Literal["atlas"] = "atlas"
    model: ModelInfo
    tasks: tuple[AtlasTask, ...]
    components: tuple[str, ...]
    effects: Rows
    low: Rows
    high: Rows
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
        """One cell of the matrix.

        Raises:
            KeyError: No such row or column.
        """
        by_task = dict(zip((row.name for row in self.tasks), self.effects, strict=True))
        return dict(zip(self.components, by_task[task], strict=True))[component]

    def selected(self, task: str) -> tuple[str, ...]:
        """Names of what a task needs beyond the others.

        Raises:
            KeyError: The atlas has no such task.
        """
        by_task = {line.task: line.components for line in self.selections}
        return tuple(component.name for component in by_task[task])

    def summary(self) -> tuple[str, ...]:
        """What is universal, and what was measured."""
        needed = sum(bool(line.components) for line in self.selections)
        universal = listed(tuple(component.name for component in self.universal))
        return (
            f"{needed} of {len(self.tasks)} tasks need components beyond the others; "
            f"universal: {universal or 'none'}",
            f"{self.model.name}: {len(self.components)} {self.kinds}, {self.masks:,} masks, "
            f"{self.cost.rows:,} rows, seed {self.seed}",
        )

    def records(self) -> list[dict[str, Any]]:
        """A line for each task and component."""
        return [
            {
                "task": task.name, "capability": task.capability, "component": component,
                "effect": effect, "low": low, "high": high,
                "selected": component in self.selected(task.name),
            }
            for task, *rows in zip(self.tasks, self.effects, self.low, self.high, strict=True)
            for component, effect, low, high in zip(self.components, *rows, strict=True)
        ]  # fmt: skip
