"""Gradient: how the response changes with each gate of the intact model, to first order."""

from __future__ import annotations

import numpy as np

from broca import designs
from broca.measurement import Plan
from broca.searches.base import GeneratorSearch, Problem, Ranking, SearchGenerator
from broca.searches.rating import harmful, mean_with_interval

FEWEST_ITEMS = 4
"""Items whose gradients can be averaged at all."""


class Gradient(GeneratorSearch):
    """Minus the gradient with respect to the gates, all at 1, averaged over the items.

    Cost: 3 x items rows. What saturates misleads it: a component that has a stand-in, or whose loss
    flips the answer only when it is complete, has no slope at the intact model.

    Source: first-order ablation saliency, as in attribution patching (Nanda 2023; Syed et al.,
    arXiv 2310.10348) with zero in the place of the other activation.
    """

    def __init__(self, problem: Problem) -> None:
        problem.require_gradients("gradient")
        self._problem = problem
        self._items = problem.items_at(3, method="gradient", fewest=FEWEST_ITEMS)
        super().__init__(self._generate())

    def _generate(self) -> SearchGenerator:
        plan = Plan(
            designs.intact(self._problem.components),
            np.zeros(len(self._items), dtype=np.intp),
            self._items,
            gradients=True,
        )
        measurement = yield plan
        effects, intervals = mean_with_interval(-measurement.slopes())
        order, selected, reason = harmful(
            effects,
            intervals,
            self._problem.k,
            reason="no gate of the intact model lowers the response when it closes",
        )
        record = {"items": len(self._items)}
        return Ranking(effects, order, selected, reason, record, intervals=intervals)
