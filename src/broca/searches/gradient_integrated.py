"""Integrated gradient: the gates' gradient along the way from the intact model to none of it."""

from __future__ import annotations

import numpy as np

from broca.errors import BadInput
from broca.measurement import Plan
from broca.searches.base import GeneratorSearch, Problem, Ranking, SearchGenerator
from broca.searches.gradient import FEWEST_ITEMS
from broca.searches.rating import harmful, mean_with_interval

DEFAULT_STEPS = 8


class IntegratedGradient(GeneratorSearch):
    """Minus the gradient of the gates, integrated while all gates close together from 1 to 0.

    The midpoint rule with `steps` points. The effects of an item add up to what it loses when
    everything is ablated, up to the rule's error. Most of the way leads through models that are
    broken in every way, which is its weakness for a single capability. Cost: 3 x steps x items
    rows.

    Args:
        problem: What to solve.
        steps: Points of the way.

    Source: Sundararajan et al., arXiv 1703.01365, with gates in the place of inputs.
    """

    def __init__(self, problem: Problem, *, steps: int = DEFAULT_STEPS) -> None:
        problem.require_gradients("gradient-integrated")
        if not isinstance(steps, int) or steps < 1:
            raise BadInput(f"gradient-integrated takes 1 step or more, not {steps}")
        self._problem = problem
        self._steps = steps
        self._items = problem.items_at(3 * steps, method="gradient-integrated", fewest=FEWEST_ITEMS)
        super().__init__(self._generate())

    def _generate(self) -> SearchGenerator:
        problem, items = self._problem, self._items
        everything = np.ones((1, problem.components), dtype=bool)
        total = np.zeros((len(items), problem.components))
        for step in range(self._steps):
            plan = Plan(
                everything,
                np.zeros(len(items), dtype=np.intp),
                items,
                gradients=True,
                scale=1 - (step + 0.5) / self._steps,
            )
            total += (yield plan).slopes()
        effects, intervals = mean_with_interval(-total / self._steps)
        order, selected, reason = harmful(
            effects,
            intervals,
            problem.k,
            reason="on the way to closed gates no gate lowers the response",
        )
        record = {"items": len(items), "steps": self._steps}
        return Ranking(effects, order, selected, reason, record, intervals=intervals)
