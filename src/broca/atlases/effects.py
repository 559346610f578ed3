"""Effects of single components on tasks, and universal components."""

from dataclasses import dataclass

import numpy as np

from broca.measurement import Bools, Floats
from broca.recovery.joint import highest, interval

LEAST = 0.05
"""Smallest effect that counts, in the response."""

MOST = 2 / 3
"""Minimum share of the tasks, and of their capabilities, that a universal component hurts."""

EVEN = 0.5
"""Minimum mean loss of the other capabilities without a universal component, as a share of the loss
of the capability that it hurts most."""

EXPLAINED = 0.01
"""Minimum share of the variance of a task's held-out rows that valid effects explain."""


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
            `(tasks,)`; None if they are exact.
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
