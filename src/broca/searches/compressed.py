"""Compressed sensing as in the paper: random groups of components, then a sparse regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput, nearest
from broca.measurement import Plan
from broca.recovery import recovery_name
from broca.recovery.uncertainty import RESAMPLES
from broca.searches.method import Method
from broca.searches.problem import Problem, Ranking, Search
from broca.searches.regression import rank_by_regression, require_regression

_MASKS = 200
_SPARSITY = 0.05


Intercept = Literal["fitted", "baseline"]


@dataclass(frozen=True, kw_only=True)
class CompressedSensing:
    """Measures masks that ablate random groups of components, all on the same items.

    Cost: (masks + 1) x items rows, with the intact model.

    Attributes:
        design: `bernoulli` or `stratified` from `broca.designs`.
        sparsity: Share of the components that a mask ablates; None stands for 0.05, or for a single
            component if that is less than one.
        recovery: Name of the regression that turns responses into effects, or any scikit-learn
            regressor with `coef_`.
        intercept: `fitted`, or `baseline` to fix it at the intact model's response (eq. 1).
        resamples: Resamples of the masks, for intervals and frequencies; 0 leaves them out.
    """

    design: Callable[..., NDArray[np.bool_]]
    sparsity: float | None = None
    recovery: Any = "lasso"
    intercept: Intercept = "fitted"
    resamples: int = RESAMPLES

    def __post_init__(self) -> None:
        if self.intercept not in get_args(Intercept):
            raise BadInput(
                f"intercept '{self.intercept}' is unknown"
                f"{nearest(self.intercept, get_args(Intercept))}: use 'fitted' or 'baseline'"
            )
        require_regression(self.recovery, self.resamples, baseline=self.intercept == "baseline")

    def require(self, problem: Problem) -> int:
        """Returns the number of masks that the budget allows."""
        self._masks(1, problem)  # a design refuses an impossible sparsity
        items = len(problem.items)
        usual = (_MASKS + 1) * items
        return problem.budget(usual, fewest=3 * items, method="compressed sensing") // items - 1

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Regresses the masks' mean responses on the masks."""
        masks = self._masks(self.require(problem), problem)
        every = np.vstack([designs.intact(problem.components), masks])
        measurement = yield Plan.crossed(every, problem.items)
        intact, *means = measurement.mask_means()
        options = {
            "masks": len(masks),
            "items": len(problem.items),
            "sparsity": self._share(problem),
            "recovery": recovery_name(self.recovery),
            "intercept": self.intercept,
        }
        return rank_by_regression(
            problem,
            masks,
            np.array(means),
            self.recovery,
            options,
            baseline=float(intact) if self.intercept == "baseline" else None,
            resamples=self.resamples,
        )

    def _masks(self, masks: int, problem: Problem) -> NDArray[np.bool_]:
        sparsity = self._share(problem)
        return self.design(masks, problem.components, sparsity=sparsity, seed=problem.seed)

    def _share(self, problem: Problem) -> float:
        """Returns the share of the components that a mask ablates."""
        if self.sparsity is not None:
            return self.sparsity
        # a little more than one component, so that rounding keeps it; at most half of them
        return min(0.5, max(_SPARSITY, 1.001 / problem.components))


BERNOULLI = Method(
    name="cs-bernoulli", make=partial(CompressedSensing, design=designs.bernoulli),
    measures="random groups of heads, then a Lasso",
    answers="which heads matter together with other ablated heads",
    rows="200 masks x items",
    usual_rows=lambda p: 201 * len(p.items),
    source="Bair et al., arXiv 2603.03335",
    tuning={"design": "bernoulli"},
)  # fmt: skip
STRATIFIED = replace(
    BERNOULLI,
    name="cs-stratified",
    measures="random groups that ablate every head equally often, then a Lasso",
    make=partial(CompressedSensing, design=designs.stratified),
    tuning={"design": "stratified"},
)
