"""Masked gradient: the gradient of the gates averaged over models that random losses hurt."""

from __future__ import annotations

import numpy as np

from broca.errors import BadInput
from broca.measurement import Plan
from broca.searches.base import GeneratorSearch, Problem, Ranking, SearchGenerator
from broca.searches.gradient import FEWEST_ITEMS
from broca.searches.rating import harmful, mean_with_interval

ROWS_PER_ITEM = 4


class MaskedGradient(GeneratorSearch):
    """Minus the gradient of the gates, averaged over rows that each ablate a random share.

    With some components gone, stand-ins show what they do and saturated answers move. Every row has
    a mask of its own, its share drawn evenly between `low` and `high`. Cost: 12 x items rows, or as
    many as the budget has.

    Args:
        problem: What to solve.
        low: Least share of the components that a row ablates.
        high: Largest share.
    """

    def __init__(self, problem: Problem, *, low: float = 0.05, high: float = 0.15) -> None:
        problem.require_gradients("gradient-masked")
        if not 0 <= low <= high < 1:
            raise BadInput(
                f"the shares of gradient-masked must be 0 <= low <= high < 1, not {low} and {high}"
            )
        self._problem = problem
        self._low, self._high = low, high
        items = problem.items_at(3 * ROWS_PER_ITEM, method="gradient-masked", fewest=FEWEST_ITEMS)
        rows = ROWS_PER_ITEM * len(items) if problem.rows is None else problem.rows // 3
        # more items say more than more masks on the same ones
        self._asked = np.resize(problem.items, rows)
        super().__init__(self._generate())

    def _generate(self) -> SearchGenerator:
        problem, count = self._problem, len(self._asked)
        rng = np.random.default_rng([problem.seed, 0x3A5C])
        masks = np.zeros((count, problem.components), dtype=bool)
        for mask, share in zip(masks, rng.uniform(self._low, self._high, count), strict=True):
            size = round(share * problem.components)
            mask[rng.choice(problem.components, size, replace=False)] = True
        plan = Plan(masks, np.arange(count), self._asked, gradients=True)
        measurement = yield plan
        effects, intervals = mean_with_interval(-measurement.slopes())
        order, selected, reason = harmful(
            effects,
            intervals,
            problem.k,
            reason="under random losses no gate lowers the response when it closes",
        )
        record = {"masks": count, "low": self._low, "high": self._high}
        return Ranking(effects, order, selected, reason, record, intervals=intervals)
