"""Component attribution by regression: for every item a linear model of random ablations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Plan
from broca.searches.base import Problem, Ranking, SearchGenerator
from broca.searches.rating import harmful, mean_with_interval
from broca.searches.records import Method

MASKS_PER_COMPONENT = 2


@dataclass(frozen=True, kw_only=True)
class Coar:
    """Regresses every item's responses on its own random masks; averages the coefficients.

    Each mask ablates each component with probability `share`; every item has its own masks and the
    intact mask. The regression is least squares with an intercept and without a penalty, so that an
    item needs more masks than there are components: 2 x components, or more if the budget allows.
    Cost: (2 x components + 1) x items rows.

    Attributes:
        share: Mean share of the components that a mask ablates.
    """

    share: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise BadInput(f"the share of coar must lie between 0 and 1, not at {self.share:g}")

    def require(self, problem: Problem) -> tuple[NDArray[np.intp], int]:
        """Returns the items that the budget allows, and the masks of each with the intact mask."""
        masks = MASKS_PER_COMPONENT * problem.components + 1
        items = problem.items_at(masks, method="coar", fewest=1)
        return items, masks if problem.rows is None else problem.rows // len(items)

    def generate(self, problem: Problem) -> SearchGenerator:
        """Averages the coefficients of the items' regressions."""
        items, masks_per_item = self.require(problem)
        rng = np.random.default_rng([problem.seed, 0xC0A2])
        masks = np.vstack([self._masks(masks_per_item - 1, problem, rng) for _ in items])
        measurement = yield Plan(masks, np.arange(len(masks)), np.repeat(items, masks_per_item))
        coefficients = np.stack(
            [
                _least_squares(matrix, responses)
                for matrix, responses in zip(
                    masks.reshape(len(items), masks_per_item, -1),
                    measurement.responses.reshape(len(items), masks_per_item),
                    strict=True,
                )
            ]
        )
        effects, intervals = mean_with_interval(coefficients)
        order, selected, reason = harmful(
            effects,
            intervals,
            problem.k,
            reason="the regressions give no component a coefficient that is significantly negative",
        )
        record = {"items": len(items), "masks": masks_per_item - 1, "share": self.share}
        return Ranking(effects, order, selected, reason, record, intervals=intervals)

    def _masks(self, count: int, problem: Problem, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draws an item's masks, after the intact mask; each component is ablated at least once."""
        components = problem.components
        random = rng.random((count, components)) < self.share
        missing = np.flatnonzero(~random.any(axis=0))
        random[rng.integers(count, size=len(missing)), missing] = True
        return np.vstack([designs.intact(components), random])


def _least_squares(masks: NDArray[np.bool_], responses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the least-squares coefficients of minimum norm, `(components,)`."""
    matrix = np.hstack([np.ones((len(masks), 1)), masks])
    solution = np.linalg.lstsq(matrix, responses, rcond=None)[0]
    return np.asarray(solution[1:], dtype=np.float64)


METHOD = Method(
    name="coar", order=7, make=Coar, response="probability",
    measures="a linear regression on random ablations for every item, averaged",
    answers="which heads matter to the average item",
    rows="2 x heads x items",
    usual_rows=lambda p: 2 * p.components * len(p.items),
    source="COAR (Shah et al., arXiv 2404.11534), on the components of a language model",
)  # fmt: skip
