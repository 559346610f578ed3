"""Iterative greedy: each of k rounds adds the component that harms most with the selected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.measurement import Plan
from broca.searches.method import Method
from broca.searches.problem import Problem, Ranking, Search


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """Ablates the selected set plus each further component in turn; adds the most harmful; k times.

    It stops before k when no further component lowers the score. Cost: up to k x components x items
    rows, and the intact model.

    The effect of a selected component is its change in its round. The others have their change in
    the last round, which orders the ranking below the selection.
    """

    def require(self, problem: Problem) -> NDArray[np.intp]:
        """Returns the items that the budget allows."""
        masks = 1 + sum(problem.components - chosen for chosen in range(problem.k))
        return problem.affordable(masks, method="greedy")

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Ranks the selected components in their order, then the others by their last round."""
        items = self.require(problem)
        singles = designs.singles(problem.components)
        chosen: list[int] = []
        effects = np.zeros(problem.components)
        score: float | None = None  # mean response with the selected components ablated
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
        reason = "no component alone lowers the score"
        return Ranking.of(effects, tuple(chosen), reason, {"items": len(items)})


METHOD = Method(
    name="greedy", make=Greedy,
    measures="every head together with those already selected, k times",
    answers="which head matters most after those selected",
    rows="about k x heads x items",
    usual_rows=lambda p: p.k * p.components * len(p.items),
)  # fmt: skip
