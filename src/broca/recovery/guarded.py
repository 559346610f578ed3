"""scikit-learn's cross-validated regressions, with zero effects instead of failures."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.recovery.base import Recovery, Regression

_SMALLEST = 0.01
"""Smallest penalty, as a share of the penalty that makes all coefficients zero: smaller penalties
take long and fit noise."""


class Guarded(Regression):
    """A scikit-learn regression on standardized responses, with zero effects for too few data.

    If all responses are equal or there are fewer than `fewest` masks, all coefficients are zero:
    cross-validation would fail or divide by zero.

    Args:
        inner: The regression, with `coef_` and `intercept_` after its fit.
        fewest: Minimum number of masks for a fit.

    Attributes:
        coef_: Effect of ablating each component, `(components,)`, in units of the responses.
        intercept_: Fitted response of the intact model.
        inner_: The fitted regression; None if nothing was fitted.
    """

    def __init__(self, inner: Any, fewest: int = 10) -> None:
        self.inner = inner
        self.fewest = fewest

    def estimate(self, matrix: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Fits the coefficients."""
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning

        spread, center = y.std(), y.mean()
        self.inner_ = None
        self.coef_ = np.zeros(matrix.shape[1])
        self.intercept_ = float(center)
        if spread == 0 or len(y) < self.fewest:
            return
        with warnings.catch_warnings():
            # at the ends of a path a fit may stop early or add nothing: other fits are chosen
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            self.inner_ = clone(self.inner).fit(matrix, (y - center) / spread)
        self.coef_ = np.asarray(self.inner_.coef_, dtype=float) * spread
        self.intercept_ = float(center + self.inner_.intercept_ * spread)


def lasso_cv() -> Guarded:
    """Makes a Lasso with a penalty from five-fold cross-validation."""
    from sklearn.linear_model import LassoCV

    return Guarded(LassoCV(cv=5, alphas=30, eps=_SMALLEST))


def elastic_net() -> Guarded:
    """Makes an elastic net; cross-validation chooses the penalty and its L1 share."""
    from sklearn.linear_model import ElasticNetCV

    return Guarded(ElasticNetCV(cv=5, alphas=30, eps=_SMALLEST, l1_ratio=[0.5, 0.8, 0.95]))


def matching_pursuit() -> Guarded:
    """Makes an orthogonal matching pursuit; cross-validation chooses the number of components."""
    from sklearn.linear_model import OrthogonalMatchingPursuitCV

    return Guarded(OrthogonalMatchingPursuitCV(cv=5))


LASSO_CV = Recovery(
    name="lasso-cv",
    help="Lasso, penalty by five-fold cross-validation",
    make=lasso_cv,
    order=2,
)
MATCHING_PURSUIT = Recovery(
    name="omp",
    help="orthogonal matching pursuit, number of components by cross-validation",
    make=matching_pursuit,
    order=3,
)
ELASTIC_NET = Recovery(
    name="elastic-net",
    help="elastic net, penalty and its kind by cross-validation",
    make=elastic_net,
    order=4,
)
