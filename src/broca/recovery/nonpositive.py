"""A Lasso whose coefficients cannot be positive: ablation does not help."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from broca.recovery.base import Recovery, Regression


class NonPositiveLasso(Regression):
    """Lasso with coefficients of zero or below, its penalty chosen by cross-validation.

    What helps when it is removed is nearly always noise; without room for it the noise of hundreds
    of harmless components cannot cancel out against the few that matter.

    Args:
        folds: Parts of the cross-validation.
        penalties: Penalties tried, spaced by scikit-learn.
        penalty: The penalty itself; nothing is chosen then.

    Attributes:
        coef_: Effect of ablating each component, `(components,)`, never above 0.
        intercept_: Response that the fit gives the intact model.
        penalty_: The penalty; None where there was nothing to fit.
    """

    def __init__(self, folds: int = 5, penalties: int = 20, penalty: float | None = None) -> None:
        self.folds = folds
        self.penalties = penalties
        self.penalty = penalty

    def estimate(self, matrix: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Fits the coefficients."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import Lasso, LassoCV

        self.penalty_ = self.penalty
        if y.std() == 0 or len(y) < 2 * self.folds:
            self.coef_ = np.zeros(matrix.shape[1])
            self.intercept_ = float(y.mean())
            return
        with warnings.catch_warnings():
            # at the smallest penalties the path may stop a little early: another one is chosen
            warnings.simplefilter("ignore", ConvergenceWarning)
            inner = (
                LassoCV(cv=self.folds, alphas=self.penalties, positive=True)
                if self.penalty is None
                else Lasso(alpha=self.penalty, positive=True)
            ).fit(matrix, -y)
        self.penalty_ = float(inner.alpha_) if self.penalty is None else self.penalty
        self.coef_ = 0.0 - inner.coef_
        self.intercept_ = -float(inner.intercept_)


RECOVERY = Recovery(
    name="non-positive",
    help="Lasso with coefficients of 0 or below, penalty by cross-validation",
    make=NonPositiveLasso,
    order=9,
)
