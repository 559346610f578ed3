"""Compressed sensing as in the paper: random groups of components, then a sparse regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Measurement, Plan
from broca.recovery import make_recovery, recovery_name
from broca.recovery.uncertainty import RESAMPLES
from broca.searches.base import Problem, Ranking
from broca.searches.regression import rank_by_regression

DEFAULT_MASKS = 200
DEFAULT_SPARSITY = 0.05


class CompressedSensing:
    """Measures masks that each ablate a random group, every mask on the same items.

    Cost: (masks + 1) x items rows; the intact model is measured too.

    Args:
        problem: What to solve.
        design: `bernoulli` or `stratified` from `broca.designs`.
        sparsity: Share of the components that a mask ablates.
        recovery: Name of the regression that turns responses into effects, or any scikit-learn
            regressor with `coef_`.
        intercept: `fitted`, or `baseline` to fix it at the intact model's response (eq. 1).
        resamples: Resamples of the masks, for intervals and frequencies; 0 leaves them out.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        design: Callable[..., NDArray[np.bool_]],
        sparsity: float = DEFAULT_SPARSITY,
        recovery: Any = "lasso",
        intercept: Literal["fitted", "baseline"] = "fitted",
        resamples: int = RESAMPLES,
    ) -> None:
        if intercept not in ("fitted", "baseline"):
            raise BadInput(f"intercept '{intercept}' is unknown: use 'fitted' or 'baseline'")
        make_recovery(recovery, baseline=intercept == "baseline")
        if resamples < 0:
            raise BadInput(f"the resamples must be 0 or more, not {resamples}")
        masks = DEFAULT_MASKS
        if problem.rows is not None:
            masks = problem.rows // len(problem.items) - 1
            if masks < 2:
                raise BadInput(
                    f"--rows {problem.rows} is too few for compressed sensing on "
                    f"{len(problem.items)} items: at least 3 masks of them are needed "
                    f"({3 * len(problem.items)} rows); use more rows or fewer --items"
                )
        self._problem = problem
        self._masks = np.vstack(
            [
                designs.intact(problem.components),
                design(masks, problem.components, sparsity=sparsity, seed=problem.seed),
            ]
        )
        self._recovery = recovery
        self._intercept = intercept
        self._sparsity = sparsity
        self._resamples = resamples
        self._measurement: Measurement | None = None

    def ask(self) -> Plan | None:
        """Asks once, for every mask on every item."""
        if self._measurement is not None:
            return None
        return Plan.crossed(self._masks, self._problem.items)

    def tell(self, measurement: Measurement) -> None:
        """Takes the responses."""
        self._measurement = measurement

    def result(self) -> Ranking:
        """Regresses the masks' mean responses on the masks."""
        assert self._measurement is not None, "ask and tell first"
        means = self._measurement.mask_means()
        record = {
            "masks": len(self._masks) - 1,
            "items": len(self._problem.items),
            "sparsity": self._sparsity,
            "recovery": recovery_name(self._recovery),
            "intercept": self._intercept,
        }
        ranking = rank_by_regression(
            self._problem,
            self._masks[1:],
            means[1:],
            self._recovery,
            baseline=float(means[0]) if self._intercept == "baseline" else None,
            resamples=self._resamples,
        )
        return replace(ranking, options=record)
