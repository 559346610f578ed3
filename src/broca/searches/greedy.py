"""Iterative greedy: k rounds, each adds the component that hurts most beside those chosen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.measurement import Measurement, Plan
from broca.searches.base import Problem, Ranking


class Greedy:
    """Ablates the chosen set plus each further component in turn; keeps the worst; k times.

    Stops before k when no further component lowers the score. Cost: up to k x components x items
    rows, and one mask more for the intact model.

    The effect of a chosen component is the change it made in its round. The others keep what they
    showed in the last round, so that the ranking below the selection says who came close.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        masks = 1 + sum(problem.components - chosen for chosen in range(problem.k))
        self._items = problem.items_within(masks, method="greedy")
        self._chosen: list[int] = []
        self._effects = np.zeros(problem.components)
        self._score: float | None = None  # mean response with the chosen ones ablated
        self._candidates: NDArray[np.intp] = np.arange(problem.components)
        self._over = False

    def ask(self) -> Plan | None:
        """Asks for one round."""
        if self._over:
            return None
        masks = designs.singles(self._problem.components)[self._candidates]
        masks[:, self._chosen] = True
        if self._score is None:
            masks = np.vstack([designs.intact(self._problem.components), masks])
        return Plan.crossed(masks, self._items)

    def tell(self, measurement: Measurement) -> None:
        """Takes a round's responses and chooses."""
        means = measurement.mask_means()
        if self._score is None:
            self._score, means = float(means[0]), means[1:]
        self._effects[self._candidates] = means - self._score
        best = int(np.argmin(means))
        if means[best] >= self._score:
            self._over = True
            return
        self._chosen.append(int(self._candidates[best]))
        self._score = float(means[best])
        self._candidates = np.delete(self._candidates, best)
        self._over = len(self._chosen) == self._problem.k or not len(self._candidates)

    def result(self) -> Ranking:
        """Ranks the chosen in their order, then the others by their last round."""
        rest = self._candidates[np.argsort(self._effects[self._candidates], kind="stable")]
        return Ranking(
            self._effects,
            (*self._chosen, *(int(column) for column in rest)),
            tuple(self._chosen),
            "" if self._chosen else "no component alone lowers the score",
            {"items": len(self._items)},
        )
