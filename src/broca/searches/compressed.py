"""Compressed sensing as in the paper: random groups of components, then a sparse regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.plan import Measurement, Plan
from broca.recovery import RECOVERIES
from broca.searches.base import Problem, Ranking, most_negative

DEFAULT_MASKS = 200
DEFAULT_SPARSITY = 0.05


class CompressedSensing:
    """Measures masks that each ablate a random group, every mask on the same items.

    Cost: (masks + 1) x items rows; the intact model is measured too.

    Args:
        problem: What to solve.
        design: `bernoulli` or `stratified` from `broca.designs`.
        sparsity: Share of the components that a mask ablates.
        recovery: Name of the regression that turns responses into effects.
        intercept: `fitted`, or `baseline` to fix it at the intact model's response (eq. 1).
    """

    def __init__(
        self,
        problem: Problem,
        *,
        design: Callable[..., NDArray[np.bool_]],
        sparsity: float = DEFAULT_SPARSITY,
        recovery: str = "lasso",
        intercept: Literal["fitted", "baseline"] = "fitted",
    ) -> None:
        if intercept not in ("fitted", "baseline"):
            raise BadInput(f"intercept '{intercept}' is unknown: use 'fitted' or 'baseline'")
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
        options: dict[str, Any] = {"baseline": means[0]} if self._intercept == "baseline" else {}
        estimator = RECOVERIES[self._recovery](**options).fit(self._masks[1:], means[1:])
        effects = np.asarray(estimator.coef_, dtype=float)
        order, selected, reason = most_negative(
            effects,
            self._problem.k,
            reason="the regression gave no component a negative coefficient",
        )
        record = {
            "masks": len(self._masks) - 1,
            "items": len(self._problem.items),
            "sparsity": self._sparsity,
            "recovery": self._recovery,
            "intercept": self._intercept,
        }
        return Ranking(effects, order, selected, reason, record)
