"""Selects the components that a task needs more than the other tasks do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from broca.recovery import highest, interval
from broca.verification.effects import EffectMatrix, Floats


@dataclass(frozen=True, eq=False)
class Contrast:
    """The contrast of a task with the tasks of other capabilities.

    Attributes:
        task: Row of the task.
        controls: Rows of the tasks with which it is compared.
        values: Effect on the task minus the mean effect on the controls, `(components,)`.
        low: Lower ends of the 90 % intervals.
        high: Upper ends of the 90 % intervals.
        selected: At most k columns that are significantly worse for the task, the worst first.
    """

    task: int
    controls: tuple[int, ...]
    values: Floats
    low: Floats
    high: Floats
    selected: tuple[int, ...]


def contrasts(matrix: EffectMatrix, k: int) -> list[Contrast]:
    """Compares every task with the usable tasks of other capabilities.

    Selected components hurt the task and cost it significantly at least `least` more than the
    others, corrected over all components. A task that the intact model cannot do has no selection.
    """
    return [_contrast(matrix, task, k) for task in range(len(matrix.effects))]


def _contrast(matrix: EffectMatrix, task: int, k: int) -> Contrast:
    controls = [
        row
        for row, capability in enumerate(matrix.capabilities)
        if matrix.usable[row] and capability != matrix.capabilities[task]
    ]
    values, resampled = matrix.effects[task], matrix.resampled[:, task]
    if controls:
        values = values - matrix.effects[controls].mean(axis=0)
        resampled = resampled - matrix.resampled[:, controls].mean(axis=1)
    low, high = interval(values, resampled)
    eligible = matrix.hurts[task] & (values <= -matrix.least) & (highest(values, resampled) < 0)
    order: Sequence[int] = np.argsort(values, kind="stable").tolist()
    selected = tuple(column for column in order if eligible[column])[:k]
    return Contrast(task, tuple(controls), values, low, high, selected)
