"""Effects of single components on tasks, and universal components."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broca import designs
from broca.components import ComponentSet
from broca.measurement import Bools, Execute, Floats
from broca.recovery.joint import highest, interval
from broca.verification.evidence import Evidence, Scope
from broca.verification.trial import Trial

LEAST = 0.05
"""Smallest effect that counts, in the response."""

MOST = 2 / 3
"""Minimum share of the tasks, and of their capabilities, that a universal component hurts."""

EVEN = 0.5
"""Minimum mean loss of the other capabilities without a universal component, as a share of the loss
of the capability that it hurts most."""

EXPLAINED = 0.01
"""Minimum share of the variance of a task's held-out rows that valid effects explain."""

_ITEMS = 60
"""Maximum number of report items of each task on which components are ablated alone."""
_RESAMPLES = 200


@dataclass(frozen=True, eq=False)
class EffectMatrix:
    """Effects of every component on every task.

    Attributes:
        effects: Change of the response, negative where the task needs the component,
            `(tasks, components)`.
        resampled: Effects on resampled masks, `(resamples, tasks, components)`.
        usable: Whether the intact model can do each task; other tasks can show no damage,
            `(tasks,)`.
        capabilities: Capability that each task measures.
        explained: Share of each task's variance on held-out masks that the effects explain,
            `(tasks,)`; None if components were ablated one by one, without a regression.
    """

    effects: Floats
    resampled: Floats
    usable: Bools
    capabilities: tuple[str, ...]
    explained: Floats | None = None

    @property
    def fits(self) -> Bools:
        """Whether the effects explain any of a task's variance, `(tasks,)`."""
        if self.explained is None:
            return np.ones(len(self.effects), dtype=bool)
        fits: Bools = self.explained >= EXPLAINED
        return fits

    @property
    def hurts(self) -> Bools:
        """Whether each ablation significantly costs each task, without correction."""
        _, high = interval(self.effects, self.resampled)
        shown = (self.usable & self.fits)[:, None]
        hurts: Bools = (high < 0) & (self.effects <= -LEAST) & shown
        return hurts

    @property
    def sure(self) -> Bools:
        """Whether each ablation significantly costs each task, corrected over its components."""
        sure: Bools = (highest(self.effects, self.resampled) < 0) & self.hurts
        return sure


def universal(matrix: EffectMatrix) -> list[int]:
    """Returns the columns of components that most tasks need to about the same degree, worst first.

    A universal component hurts two thirds of the usable tasks. It costs two thirds of their
    capabilities significantly more than a negligible amount, as the mean of a capability's tasks.
    The mean loss of the capabilities other than the most hurt is at least `EVEN` of the loss of
    that capability, because a component that one capability needs far more than the others belongs
    to it. With a single capability no component is universal.
    """
    capabilities = np.array(matrix.capabilities)
    names = np.unique(capabilities[matrix.usable])
    if len(names) < 2:
        return []
    rows = [np.flatnonzero(matrix.usable & (capabilities == name)) for name in names]
    pooled = np.stack([matrix.effects[tasks].mean(axis=0) for tasks in rows])
    resampled = np.stack([matrix.resampled[:, tasks].mean(axis=1) for tasks in rows], axis=1)
    _, high = interval(pooled, resampled)
    reached = (high < 0) & (pooled <= -LEAST)
    most = -pooled.min(axis=0)
    others = (-pooled.sum(axis=0) - most) / (len(names) - 1)
    everywhere = (
        (matrix.hurts.sum(axis=0) >= MOST * matrix.usable.sum())
        & (reached.sum(axis=0) >= MOST * len(names))
        & (others >= EVEN * most)
    )
    order = np.argsort(matrix.effects[matrix.usable].mean(axis=0), kind="stable")
    return [int(column) for column in order if everywhere[column]]


def ablate_alone(
    columns: Sequence[int],
    components: ComponentSet,
    trial: Trial,
    execute: Execute,
    before: Mapping[str, float],
    *,
    seed: int,
) -> tuple[dict[str, dict[str, float]], tuple[str, ...]]:
    """Ablates components one by one and scores every task on some of its report items.

    Args:
        columns: Columns of the components.
        components: All components.
        trial: The tasks and their report items.
        execute: Measures a plan; higher responses are better.
        before: Score of every task on the intact model; tasks at chance can show no damage.
        seed: Seed of the resamples.

    Returns:
        The change of every task's score without each component, and the components that most tasks
        need to about the same degree, worst first.
    """
    if not columns:
        return {}, ()
    masks = designs.of_sets([(), *([column] for column in columns)], len(components))
    measured = trial.responses(execute, masks, trial.at_most(_ITEMS))
    evidence = Evidence(trial, Scope(resamples=_RESAMPLES, seed=seed), measured)
    losses, draws = zip(
        *(evidence.resampled(trial.names, row) for row in range(1, len(masks))), strict=True
    )
    benchmarks = [trial.benchmarks[name] for name in measured]
    usable = [
        not benchmark.at_chance(before[name], items=len(trial.places[name]))
        for name, benchmark in zip(measured, benchmarks, strict=True)
    ]
    matrix = EffectMatrix(
        0.0 - np.transpose(losses),  # 0.0 - x, not -x: no loss is 0, not -0
        np.ascontiguousarray(-np.transpose(draws)),
        np.array(usable),
        tuple(benchmark.capability for benchmark in benchmarks),
    )
    names = [components.names[column] for column in columns]
    by_component = {
        name: dict(zip(measured, matrix.effects[:, column].tolist(), strict=True))
        for column, name in enumerate(names)
    }
    return by_component, tuple(names[column] for column in universal(matrix))
