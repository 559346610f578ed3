"""Masked gradient: the gradient of the gates averaged over randomly ablated models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.measurement import Plan
from broca.searches.base import Problem, SearchGenerator
from broca.searches.gradient import FEWEST_ITEMS, ranking_of_slopes
from broca.searches.pilot import random_masks
from broca.searches.records import Method

ROWS_PER_ITEM = 4


@dataclass(frozen=True, kw_only=True)
class MaskedGradient:
    """Minus the gradient of the gates, averaged over rows that each ablate a random share.

    With some components ablated, backups show their effect and saturated responses change. Every
    row has its own mask, whose share is drawn uniformly between `low` and `high`. Cost: 12 x items
    rows, or as many as the budget has.

    Attributes:
        low: Smallest share of the components that a row ablates.
        high: Largest share.
    """

    low: float = 0.05
    high: float = 0.15

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < 1:
            raise BadInput(
                "the shares of gradient-masked must be 0 <= low <= high < 1, not "
                f"{self.low} and {self.high}"
            )

    def require(self, problem: Problem) -> NDArray[np.intp]:
        """Returns the item of every row that the budget allows."""
        items = problem.items_at(3 * ROWS_PER_ITEM, method="gradient-masked", fewest=FEWEST_ITEMS)
        rows = ROWS_PER_ITEM * len(items) if problem.rows is None else problem.rows // 3
        # more items are worth more than more masks on the same items
        return np.resize(problem.items, rows)

    def generate(self, problem: Problem) -> SearchGenerator:
        """Averages the gradients of all rows."""
        row_items = self.require(problem)
        count = len(row_items)
        rng = np.random.default_rng([problem.seed, 0x3A5C])
        sizes = np.round(rng.uniform(self.low, self.high, count) * problem.components)
        masks = random_masks(sizes, np.arange(problem.components), problem.components, rng)
        plan = Plan(masks, np.arange(count), row_items, gradients=True)
        measurement = yield plan
        return ranking_of_slopes(
            measurement.slopes(),
            problem.k,
            reason="under random ablations no gate lowers the response when it closes",
            record={"masks": count, "low": self.low, "high": self.high},
        )


METHOD = Method(
    name="gradient-masked", order=10, make=MaskedGradient, response="probability",
    needs_gradients=True,
    measures="the gradient of the gates averaged over rows with 5 to 15 % of the heads off",
    answers="which heads change the answer when others are ablated",
    rows="12 x items",
    usual_rows=lambda p: 12 * len(p.items),
)  # fmt: skip
