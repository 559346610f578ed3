"""Iterative greedy: k rounds, each adds the component that hurts most beside those chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.measurement import Plan
from broca.searches.base import Problem, Ranking, SearchGenerator
from broca.searches.records import Method


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """Ablates the chosen set plus each further component in turn; keeps the worst; k times.

    Stops before k when no further component lowers the score. Cost: up to k x components x items
    rows, and one mask more for the intact model.

    The effect of a chosen component is the change it made in its round. The others keep what they
    showed in the last round, so that the ranking below the selection says who came close.
    """

    def require(self, problem: Problem) -> NDArray[np.intp]:
        """The items that the budget pays for."""
        masks = 1 + sum(problem.components - chosen for chosen in range(problem.k))
        return problem.items_within(masks, method="greedy")

    def generate(self, problem: Problem) -> SearchGenerator:
        """Ranks the chosen in their order, then the others by their last round."""
        items = self.require(problem)
        singles = designs.singles(problem.components)
        chosen: list[int] = []
        effects = np.zeros(problem.components)
        score: float | None = None  # mean response with the chosen ones ablated
        candidates = np.arange(problem.components)
        while len(chosen) < problem.k and len(candidates):
            masks = singles[candidates]
            masks[:, chosen] = True
            if score is None:
                masks = np.vstack([designs.intact(problem.components), masks])
            means = (yield Plan.crossed(masks, items)).mask_means()
            if score is None:
                score, means = float(means[0]), means[1:]
            effects[candidates] = means - score
            best = int(np.argmin(means))
            if means[best] >= score:
                break
            chosen.append(int(candidates[best]))
            score = float(means[best])
            candidates = np.delete(candidates, best)
        others = candidates[np.argsort(effects[candidates], kind="stable")]
        return Ranking(
            effects,
            (*chosen, *(int(column) for column in others)),
            tuple(chosen),
            "" if chosen else "no component alone lowers the score",
            {"items": len(items)},
        )


METHOD = Method(
    name="greedy", order=3, make=Greedy,
    measures="every head beside those already chosen, k times",
    answers="which head matters most after those chosen",
    rows="about k x heads x items",
    counted_losses="additive",
)  # fmt: skip
