"""Which components every task needs, and which one task needs beyond the others."""

from __future__ import annotations

from collections.abc import Sequence
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
    """

    effects: Floats
    resampled: Floats
    usable: Bools
    capabilities: tuple[str, ...]
    least: float

    @property
    def hurts(self) -> Bools:
        """Whether a loss surely costs a task something that counts, each by itself."""
        _, high = interval(self.effects, self.resampled)
        found: Bools = (high < 0) & (self.effects <= -self.least) & self.usable[:, None]
        return found

    @property
    def sure(self) -> Bools:
        """The same, sure for all components of a task together."""
        found: Bools = (highest(self.effects, self.resampled) < 0) & self.hurts
        return found


def universal(matrix: Matrix) -> list[int]:
    """Columns of the components that most tasks need, and about alike, worst first.

    Each must hurt two thirds of the usable tasks; surely cost two thirds of their capabilities
    something that counts, as the mean of a capability's tasks; and cost the capabilities other than
    the one that it hurts most at least `EVEN` of what that one loses, on average: what one
    capability needs far more than the others is its own. One capability alone says nothing.
    """
    capabilities = np.array(matrix.capabilities)
    names = np.unique(capabilities[matrix.usable])
    if len(names) < 2:
        return []
    rows = [np.flatnonzero(matrix.usable & (capabilities == one)) for one in names]
    pooled = np.stack([matrix.effects[own].mean(axis=0) for own in rows])
    resampled = np.stack([matrix.resampled[:, own].mean(axis=1) for own in rows], axis=1)
    _, high = interval(pooled, resampled)
    reached = (high < 0) & (pooled <= -matrix.least)
    most = -pooled.min(axis=0)
    others = (-pooled.sum(axis=0) - most) / (len(names) - 1)
    found = (
        (matrix.hurts.sum(axis=0) >= MOST * matrix.usable.sum())
        & (reached.sum(axis=0) >= MOST * len(names))
        & (others >= EVEN * most)
    )
    order = np.argsort(matrix.effects[matrix.usable].mean(axis=0), kind="stable")
    return [int(column) for column in order if found[column]]


@dataclass(frozen=True, eq=False)
class Contrast:
    """What one task loses beyond the tasks of other capabilities.

    Attributes:
        task: Row of the task.
        controls: Rows of the tasks that it is compared with.
        values: Effect on the task minus the mean effect on them, `(components,)`.
        low: Lower ends of their 90 % intervals.
        high: Upper ends.
        selected: At most k columns of those that are surely worse for the task, worst first.
    """

    task: int
    controls: tuple[int, ...]
    values: Floats
    low: Floats
    high: Floats
    selected: tuple[int, ...]


def contrasts(matrix: Matrix, k: int) -> list[Contrast]:
    """Compares every task with the usable tasks of other capabilities.

    Selected is who hurts the task, and costs it at least `least` more than the others, surely so
    for all components together. A task that the intact model cannot do selects nothing.
    """
    return [_contrast(matrix, task, k) for task in range(len(matrix.effects))]


def _contrast(matrix: Matrix, task: int, k: int) -> Contrast:
    controls = [
        other
        for other, capability in enumerate(matrix.capabilities)
        if matrix.usable[other] and capability != matrix.capabilities[task]
    ]
    values, resampled = matrix.effects[task], matrix.resampled[:, task]
    if controls:
        values = values - matrix.effects[controls].mean(axis=0)
        resampled = resampled - matrix.resampled[:, controls].mean(axis=1)
    low, high = interval(values, resampled)
    wanted = matrix.hurts[task] & (values <= -matrix.least) & (highest(values, resampled) < 0)
    order: Sequence[int] = np.argsort(values, kind="stable").tolist()
    selected = tuple(column for column in order if wanted[column])[:k]
    return Contrast(task, tuple(controls), values, low, high, selected)
