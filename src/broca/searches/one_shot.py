"""One-shot greedy: ablates each component alone, selects the k most harmful."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.measurement import Plan
from broca.searches.method import Method
from broca.searches.problem import Problem, Ranking, Search, most_negative


@dataclass(frozen=True, kw_only=True)
class OneShot:
    """Measures every component alone, on the same items as the intact model.

    Cost: (components + 1) x items rows.
    """

    def require(self, problem: Problem) -> NDArray[np.intp]:
        """Returns the items that the budget allows."""
        return problem.affordable(problem.components + 1, method="one-shot")

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Ranks by the change from the intact model on the same items."""
        items = self.require(problem)
        singles = designs.singles(problem.components)
        masks = np.vstack([designs.intact(problem.components), singles])
        means = (yield Plan.crossed(masks, items)).mask_means()
        effects = means[1:] - means[0]
        selected = most_negative(effects, problem.k)
        reason = "no component alone lowers the score"
        return Ranking.of(effects, selected, reason, {"items": len(items)})


METHOD = Method(
    name="one-shot", make=OneShot,
    measures="every head alone",
    answers="which heads matter when ablated alone",
    rows="(heads + 1) x items",
    usual_rows=lambda p: (p.components + 1) * len(p.items),
)  # fmt: skip
