"""Gradient: the first-order change of the response with each gate of the intact model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.measurement import Plan
from broca.searches.base import Problem, Ranking, SearchGenerator
from broca.searches.rating import harmful, mean_with_interval
from broca.searches.records import Method

FEWEST_ITEMS = 4
"""Minimum number of items."""


@dataclass(frozen=True, kw_only=True)
class Gradient:
    """Minus the gradient with respect to the gates, all at 1, averaged over the items.

    Cost: 3 x items rows. Saturation misleads it: a component that has a backup, or whose ablation
    changes the answer only when the gate is fully closed, has no slope at the intact model.
    """

    def require(self, problem: Problem) -> NDArray[np.intp]:
        """Returns the items that the budget allows."""
        return problem.items_at(3, method="gradient", fewest=FEWEST_ITEMS)

    def generate(self, problem: Problem) -> SearchGenerator:
        """Averages the gradients of the items' responses."""
        items = self.require(problem)
        plan = Plan(
            designs.intact(problem.components),
            np.zeros(len(items), dtype=np.intp),
            items,
            gradients=True,
        )
        measurement = yield plan
        return ranking_of_slopes(
            measurement.slopes(),
            problem.k,
            reason="no gate of the intact model lowers the response when it closes",
            record={"items": len(items)},
        )


def ranking_of_slopes(
    slopes: NDArray[np.floating[Any]], k: int, *, reason: str, record: dict[str, Any]
) -> Ranking:
    """Ranks components by minus the mean slope of the response with respect to their gates.

    Args:
        slopes: The gradients, `(gradients, components)`.
        k: Maximum number of components to select.
        reason: Reason that is given if none is selected.
        record: The options that the search used.
    """
    effects, intervals = mean_with_interval(-slopes)
    order, selected, why_none = harmful(effects, intervals, k, reason=reason)
    return Ranking(effects, order, selected, why_none, record, intervals=intervals)


METHOD = Method(
    name="gradient", order=9, make=Gradient, response="probability", needs_gradients=True,
    measures="the gradient of the gates of the intact model",
    answers="which heads change the answer to first order",
    rows="3 x items",
    usual_rows=lambda p: 3 * len(p.items),
    source="first-order ablation saliency, as in attribution patching (Nanda 2023; Syed et al., "
    "arXiv 2310.10348) with zero in the place of the other activation",
)  # fmt: skip
