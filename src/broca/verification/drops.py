"""Drops of tasks on their report items."""

from __future__ import annotations

from dataclasses import dataclass

from broca.results.base import Interval
from broca.results.verification import Role


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
