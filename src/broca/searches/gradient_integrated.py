"""Integrated gradient: the gates' gradient on the path from the intact to the ablated model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.measurement import Plan
from broca.searches.base import Problem, SearchGenerator
from broca.searches.gradient import FEWEST_ITEMS, ranking_of_slopes
from broca.searches.records import Method

DEFAULT_STEPS = 8


@dataclass(frozen=True, kw_only=True)
class IntegratedGradient:
    """Minus the gradient of the gates, integrated while all gates close together from 1 to 0.

    It uses the midpoint rule with `steps` points. The effects of an item add up to its loss when
    everything is ablated, up to the error of the rule. Most of the path leads through models that
    can do nothing, which is its weakness for a single capability. Cost: 3 x steps x items rows.

    Attributes:
        steps: Number of points of the path.
    """

    steps: int = DEFAULT_STEPS

    def __post_init__(self) -> None:
        if not isinstance(self.steps, int) or self.steps < 1:
            raise BadInput(f"gradient-integrated takes 1 step or more, not {self.steps}")

    def require(self, problem: Problem) -> NDArray[np.intp]:
        """Returns the items that the budget allows."""
        cost = 3 * self.steps
        return problem.items_at(cost, method="gradient-integrated", fewest=FEWEST_ITEMS)

    def generate(self, problem: Problem) -> SearchGenerator:
        """Adds up the gradients at the points of the path."""
        items = self.require(problem)
        everything = np.ones((1, problem.components), dtype=bool)
        total = np.zeros((len(items), problem.components))
        for step in range(self.steps):
            plan = Plan(
                everything,
                np.zeros(len(items), dtype=np.intp),
                items,
                gradients=True,
                scale=1 - (step + 0.5) / self.steps,
            )
            total += (yield plan).slopes()
        return ranking_of_slopes(
            total / self.steps,
            problem.k,
            reason="on the path to closed gates no gate lowers the response",
            record={"items": len(items), "steps": self.steps},
        )


METHOD = Method(
    name="gradient-integrated", order=11, make=IntegratedGradient, response="probability",
    needs_gradients=True,
    measures="the gradient of the gates integrated while all gates close",
    answers="how the loss of all heads is shared among them",
    rows="24 x items",
    usual_rows=lambda p: 24 * len(p.items),
    source="Sundararajan et al., arXiv 1703.01365, with gates in the place of inputs",
)  # fmt: skip
