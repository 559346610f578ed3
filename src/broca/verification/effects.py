"""Effects of components on tasks as a matrix, and which components are universal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.recovery import highest, interval

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEAST = 0.05
"""Least effect that counts, in the response."""

MOST = 2 / 3
"""Share of the tasks, and of their capabilities, that a universal component hurts at least."""

EVEN = 0.5
"""Share of what a universal component costs the capability that it hurts most which the others lose
at least, on average."""


EXPLAINED = 0.01
"""Share of the variance of a task's held-out rows that effects explain at least to be believed."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Effects of every component on every task.

    Attributes:
        effects: Change of the response, negative where the task needs the component,
            `(tasks, components)`.
        resampled: The same on masks drawn anew, `(resamples, tasks, components)`.
        usable: Tasks that the intact model can do: others can show no damage, `(tasks,)`.
        capabilities: What each task measures.
        least: Least effect that counts.
        explained: Share of each task's variance on held-out masks that the effects explain,
            `(tasks,)`; None where they were measured one by one, so that nothing was fitted.
    """

    effects: Floats
    resampled: Floats
    usable: Bools
    capabilities: tuple[str, ...]
    least: float
    explained: Floats | None = None

    @property
    def fits(self) -> Bools:
        """Whether the effects explain anything of what a task loses, `(tasks,)`."""
        if self.explained is None:
            return np.ones(len(self.effects), dtype=bool)
        fits: Bools = self.explained >= EXPLAINED
        return fits

    @property
    def hurts(self) -> Bools:
        """Whether a loss significantly costs a task something that counts, each by itself."""
        _, high = interval(self.effects, self.resampled)
        shown = (self.usable & self.fits)[:, None]
        hurts: Bools = (high < 0) & (self.effects <= -self.least) & shown
        return hurts

    @property
    def sure(self) -> Bools:
        """The same, sure for all components of a task together."""
        sure: Bools = (highest(self.effects, self.resampled) < 0) & self.hurts
        return sure


def universal(matrix: Matrix) -> list[int]:
    """Columns of the components that most tasks need to about the same degree, worst first.

    Each must hurt two thirds of the usable tasks; cost two thirds of their capabilities
    significantly more than a negligible amount, as the mean of a capability's tasks; and cost the
    capabilities other than the one that it hurts most at least `EVEN` of what that one loses, on
    average: a component that one capability needs far more than the others belongs to it. With a
    single capability nothing is universal.
    """
    capabilities = np.array(matrix.capabilities)
    names = np.unique(capabilities[matrix.usable])
    if len(names) < 2:
        return []
    rows = [np.flatnonzero(matrix.usable & (capabilities == name)) for name in names]
    pooled = np.stack([matrix.effects[tasks].mean(axis=0) for tasks in rows])
    resampled = np.stack([matrix.resampled[:, tasks].mean(axis=1) for tasks in rows], axis=1)
    _, high = interval(pooled, resampled)
    reached = (high < 0) & (pooled <= -matrix.least)
    most = -pooled.min(axis=0)
    others = (-pooled.sum(axis=0) - most) / (len(names) - 1)
    everywhere = (
        (matrix.hurts.sum(axis=0) >= MOST * matrix.usable.sum())
        & (reached.sum(axis=0) >= MOST * len(names))
        & (others >= EVEN * most)
    )
    order = np.argsort(matrix.effects[matrix.usable].mean(axis=0), kind="stable")
    return [int(column) for column in order if everywhere[column]]
