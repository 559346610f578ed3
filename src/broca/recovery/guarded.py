"""scikit-learn's cross-validated regressions, which find no effects where they would fail."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.recovery.base import Recovery, Regression

_SMALLEST = 0.01
"""Smallest penalty tried, as a share of the one that leaves nothing: below it fits take long and
follow noise."""


class Guarded(Regression):
    """A scikit-learn regression on standardized responses; no effects where nothing can be said.

    Where every response is the same, or there are fewer than `fewest` masks, all coefficients are
    zero: cross-validation would fail there, or divide by nothing.

    Args:
        inner: The regression, with `coef_` and `intercept_` after its fit.
        fewest: Fewest masks that it can be fitted to.

    Attributes:
        coef_: Effect of ablating each component, `(components,)`, in units of the responses.
        intercept_: Response that the fit gives the intact model.
        inner_: The fitted regression; None where there was nothing to fit.
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
            # at the ends of a path a fit may stop early or find nothing to add: others are chosen
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            self.inner_ = clone(self.inner).fit(matrix, (y - center) / spread)
        self.coef_ = np.asarray(self.inner_.coef_, dtype=float) * spread
        self.intercept_ = float(center + self.inner_.intercept_ * spread)


def lasso_cv() -> Guarded:
    """The Lasso whose penalty five-fold cross-validation chooses."""
    from sklearn.linear_model import LassoCV

    return Guarded(LassoCV(cv=5, alphas=30, eps=_SMALLEST))


def elastic_net() -> Guarded:
    """The elastic net; cross-validation chooses the penalty and its share of absolute values."""
    from sklearn.linear_model import ElasticNetCV

    return Guarded(ElasticNetCV(cv=5, alphas=30, eps=_SMALLEST, l1_ratio=[0.5, 0.8, 0.95]))


def matching_pursuit() -> Guarded:
    """Orthogonal matching pursuit; cross-validation chooses the number of components."""
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
