"""Component attribution by regression: for every item a linear model of random ablations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Plan
from broca.searches.base import GeneratorSearch, Problem, Ranking, SearchGenerator
from broca.searches.rating import harmful, mean_with_interval

MASKS_PER_COMPONENT = 2


class Coar(GeneratorSearch):
    """Regresses every item's responses on its own random masks; averages the coefficients.

    Each mask ablates each component with probability `share`; every item has masks of its own and
    the intact model. Least squares with an intercept and without a penalty, so an item needs more
    masks than there are components: 2 x components, or more if the budget has them. Cost:
    (2 x components + 1) x items rows.

    Args:
        problem: What to solve.
        share: Share of the components that a mask ablates on average.

    Source: COAR (Shah et al., arXiv 2404.11534), on the components of a language model.
    """

    def __init__(self, problem: Problem, *, share: float = 0.05) -> None:
        if not 0 < share < 1:
            raise BadInput(f"the share of coar must lie between 0 and 1, not at {share:g}")
        self._problem = problem
        self._share = share
        each = MASKS_PER_COMPONENT * problem.components + 1
        self._items = problem.items_at(each, method="coar", fewest=1)
        self._each = each if problem.rows is None else problem.rows // len(self._items)
        super().__init__(self._generate())

    def _generate(self) -> SearchGenerator:
        problem, items = self._problem, self._items
        rng = np.random.default_rng([problem.seed, 0xC0A2])
        masks = np.vstack([self._masks(rng) for _ in items])
        measurement = yield Plan(masks, np.arange(len(masks)), np.repeat(items, self._each))
        coefficients = np.stack(
            [
                _least_squares(matrix, responses)
                for matrix, responses in zip(
                    masks.reshape(len(items), self._each, -1),
                    measurement.responses.reshape(len(items), self._each),
                    strict=True,
                )
            ]
        )
        effects, intervals = mean_with_interval(coefficients)
        order, selected, reason = harmful(
            effects,
            intervals,
            problem.k,
            reason="the regressions give no component a coefficient that is surely negative",
        )
        record = {"items": len(items), "masks": self._each - 1, "share": self._share}
        return Ranking(effects, order, selected, reason, record, intervals=intervals)

    def _masks(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """The intact mask and an item's random ones, which ablate everything at least once."""
        count, components = self._each - 1, self._problem.components
        random = rng.random((count, components)) < self._share
        missing = np.flatnonzero(~random.any(axis=0))
        random[rng.integers(count, size=len(missing)), missing] = True
        return np.vstack([designs.intact(components), random])


def _least_squares(masks: NDArray[np.bool_], responses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients of the components, `(components,)`; the shortest of all best ones."""
    matrix = np.hstack([np.ones((len(masks), 1)), masks])
    solution = np.linalg.lstsq(matrix, responses, rcond=None)[0]
    return np.asarray(solution[1:], dtype=np.float64)
