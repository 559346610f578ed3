"""Gradients of the gates: at the intact model, under random masks, and on a path to closed gates.

The effect of a component is minus the mean slope of the response with respect to its gate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Plan
from broca.searches.method import Method
from broca.searches.pilot import random_masks
from broca.searches.problem import Problem, Ranking, Search

_FEWEST_ITEMS = 4
_ROWS_PER_ITEM = 4


@dataclass(frozen=True, kw_only=True)
class Gradient:
    """Minus the gradient with respect to the gates, all at 1, averaged over the items.

    Cost: 3 x items rows. Saturation misleads it: a component that has a backup, or whose ablation
    changes the answer only when the gate is fully closed, has no slope at the intact model.
    """

    def require(self, problem: Problem) -> NDArray[np.intp]:
        """Returns the items that the budget allows."""
        return problem.affordable(3, method="gradient", fewest=_FEWEST_ITEMS)

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Averages the gradients of the items' responses."""
        items = self.require(problem)
        rows = np.zeros(len(items), dtype=np.intp)
        plan = Plan(designs.intact(problem.components), rows, items, gradients=True)
        return Ranking.of_samples(
            -(yield plan).slopes(),
            problem.k,
            reason="no gate of the intact model lowers the response when it closes",
            options={"items": len(items)},
        )


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
        cost = 3 * _ROWS_PER_ITEM
        items = problem.affordable(cost, method="gradient-masked", fewest=_FEWEST_ITEMS)
        rows = _ROWS_PER_ITEM * len(items) if problem.rows is None else problem.rows // 3
        # more items are worth more than more masks on the same items
        return np.resize(problem.items, rows)

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Averages the gradients of all rows."""
        row_items = self.require(problem)
        count = len(row_items)
        rng = np.random.default_rng([problem.seed, 0x3A5C])
        sizes = np.round(rng.uniform(self.low, self.high, count) * problem.components)
        masks = random_masks(sizes, problem.components, rng)
        return Ranking.of_samples(
            -(yield Plan(masks, np.arange(count), row_items, gradients=True)).slopes(),
            problem.k,
            reason="under random ablations no gate lowers the response when it closes",
            options={"masks": count, "low": self.low, "high": self.high},
        )


@dataclass(frozen=True, kw_only=True)
class IntegratedGradient:
    """Minus the gradient of the gates, integrated while all gates close together from 1 to 0.

    It uses the midpoint rule with `steps` points. The effects of an item add up to its loss when
    everything is ablated, up to the error of the rule. Most of the path leads through models that
    can do nothing, which is its weakness for a single capability. Cost: 3 x steps x items rows.

    Attributes:
        steps: Number of points of the path.
    """

    steps: int = 8

    def __post_init__(self) -> None:
        if not isinstance(self.steps, int) or self.steps < 1:
            raise BadInput(f"gradient-integrated takes 1 step or more, not {self.steps}")

    def require(self, problem: Problem) -> NDArray[np.intp]:
        """Returns the items that the budget allows."""
        cost = 3 * self.steps
        return problem.affordable(cost, method="gradient-integrated", fewest=_FEWEST_ITEMS)

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Adds up the gradients at the points of the path."""
        items = self.require(problem)
        rows = np.zeros(len(items), dtype=np.intp)
        everything = np.ones((1, problem.components), dtype=bool)
        total = np.zeros((len(items), problem.components))
        for step in range(self.steps):
            scale = 1 - (step + 0.5) / self.steps
            total += (yield Plan(everything, rows, items, gradients=True, scale=scale)).slopes()
        return Ranking.of_samples(
            -total / self.steps,
            problem.k,
            reason="on the path to closed gates no gate lowers the response",
            options={"items": len(items), "steps": self.steps},
        )


INTACT = Method(
    name="gradient", make=Gradient, response="probability", needs_gradients=True,
    measures="the gradient of the gates of the intact model",
    answers="which heads change the answer to first order",
    rows="3 x items",
    usual_rows=lambda p: 3 * len(p.items),
    source="first-order ablation saliency, as in attribution patching (Nanda 2023; Syed et al., "
    "arXiv 2310.10348) with zero in the place of the other activation",
)  # fmt: skip
MASKED = Method(
    name="gradient-masked", make=MaskedGradient, response="probability", needs_gradients=True,
    measures="the gradient of the gates averaged over rows with 5 to 15 % of the heads off",
    answers="which heads change the answer when others are ablated",
    rows="12 x items",
    usual_rows=lambda p: 12 * len(p.items),
)  # fmt: skip
INTEGRATED = Method(
    name="gradient-integrated", make=IntegratedGradient, response="probability",
    needs_gradients=True,
    measures="the gradient of the gates integrated while all gates close",
    answers="how the loss of all heads is shared among them",
    rows="24 x items",
    usual_rows=lambda p: 24 * len(p.items),
    source="Sundararajan et al., arXiv 1703.01365, with gates in the place of inputs",
)  # fmt: skip
