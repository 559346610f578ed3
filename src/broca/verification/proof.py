"""Ablates a selection together and scores the task and the others on their report items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broca.results.base import Interval
from broca.results.verification import Role
from broca.tasks import Benchmark


@dataclass(frozen=True)
class MeasuredDrop:
    """The drop of a task with its scores and statistics.

    Attributes:
        task: The task.
        role: What it is to the claim; one task is the claimed one.
        metric: Its main metric.
        items: Number of items, the same before and after.
        before: Score of the intact model.
        after: Score with the set ablated.
        drop: The drop, with a paired bootstrap interval.
        test: `mcnemar` for right/wrong metrics, `permutation` for continuous ones.
        p: Two-sided p-value of no change.
        p_holm: `p`, Holm-corrected over the tasks other than the claimed task.
        chance: Score of guessing; None for metrics where less is better.
    """

    task: str
    role: Role
    metric: str
    items: int
    before: float
    after: float
    drop: Interval
    test: str
    p: float
    p_holm: float
    chance: float | None = None

    @property
    def below_chance(self) -> float:
        """The part of the drop that lies below chance."""
        return below_chance(self.before, self.after, self.chance)


def below_chance(before: float, after: float, chance: float | None) -> float:
    """Returns the part of a drop between two scores that lies below chance.

    A model that has lost a skill guesses; a model below chance prefers wrong answers.
    """
    if not chance:
        return 0.0
    return max(0.0, min(before, chance) - after)


@dataclass(frozen=True)
class Proof:
    """Scores before and after an ablation, on `report` items.

    Attributes:
        task: The task that was localized.
        before: Score of every task on the intact model.
        after: Score of every task with the selection ablated.
        drop: Drop of the task.
        off_target_drop: Mean drop of the others, without same-skill tasks; None without others.
        specific_drop: `drop` minus `off_target_drop` (equal to `drop` without others).
    """

    task: str
    before: dict[str, float]
    after: dict[str, float]
    drop: float
    off_target_drop: float | None
    specific_drop: float


def prove(
    task: str,
    benchmarks: Mapping[str, Benchmark],
    before: dict[str, float],
    after: dict[str, float],
    *,
    same_skill: Sequence[str] = (),
) -> Proof:
    """Compares the scores of the task and of the others before and after an ablation.

    Tasks of the same skill are not controls: their drops do not enter the off-target drop.
    """
    losses = {
        name: benchmark.loss(before[name], after[name]) for name, benchmark in benchmarks.items()
    }
    others = [loss for name, loss in losses.items() if name not in (task, *same_skill)]
    off_target = float(np.mean(others)) if others else None
    return Proof(
        task=task,
        before=before,
        after=after,
        drop=losses[task],
        off_target_drop=off_target,
        specific_drop=losses[task] - (off_target or 0.0),
    )
