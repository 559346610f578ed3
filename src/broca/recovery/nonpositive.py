"""A Lasso with coefficients of zero or below: it assumes that no ablation helps."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from broca.recovery.base import Recovery, Regression


class NonPositiveLasso(Regression):
    """Lasso with coefficients of zero or below and a penalty from cross-validation.

    An ablation that appears to help is nearly always noise. Without positive coefficients, the
    noise of hundreds of harmless components cannot cancel the effects of the few that matter.

    Args:
        folds: Number of folds of the cross-validation.
        penalties: Number of penalties, spaced by scikit-learn.
        penalty: A fixed penalty; cross-validation is then skipped.

    Attributes:
        coef_: Effect of ablating each component, `(components,)`, never above 0.
        intercept_: Fitted response of the intact model.
        penalty_: The penalty; None if nothing was fitted.
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
            # at the smallest penalties the path may stop early: another penalty is chosen
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
