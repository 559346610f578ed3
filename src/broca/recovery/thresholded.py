"""Dense regressions that set coefficients to zero if noise alone explains them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.recovery.base import Recovery, Regression
from broca.recovery.guarded import Guarded

PENALTIES = np.logspace(-2, 4, 25)
"""Candidate penalties of ridge."""

_MEDIAN_OF_NORMAL = 0.6745
"""Median of the absolute values of standard normal numbers."""


class Thresholded(Regression):
    """A dense regression that sets small coefficients to exactly zero.

    A coefficient is kept if its absolute value exceeds `sqrt(2 log components)` standard errors,
    about the largest of as many normal errors (the universal threshold of Donoho and Johnstone
    1994). The standard error comes from the posterior, `sigma_`, if the regression has a posterior,
    else from a ridge estimate with the chosen penalty. Its lower bound is the spread of all
    coefficients by their median: most components have no effect, and standard errors are too small
    with more components than masks.

    Args:
        inner: `RidgeCV`, `BayesianRidge` or `ARDRegression`.

    Attributes:
        coef_: Effect of ablating each component, `(components,)`.
        intercept_: Fitted response of the intact model.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def estimate(self, matrix: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Fits the coefficients."""
        dense = Guarded(self.inner).fit(matrix, y)
        self.coef_ = dense.coef_
        self.intercept_ = dense.intercept_
        if dense.inner_ is None:
            return
        if hasattr(dense.inner_, "sigma_"):
            errors = _posterior_errors(dense.inner_, matrix.shape[1]) * y.std()
        else:
            errors = _ridge_errors(matrix, y - dense.predict(matrix), float(dense.inner_.alpha_))
        errors = np.maximum(errors, np.median(np.abs(dense.coef_)) / _MEDIAN_OF_NORMAL)
        threshold = np.sqrt(2 * np.log(max(2, matrix.shape[1])))
        self.coef_ = np.where(np.abs(dense.coef_) > threshold * errors, dense.coef_, 0.0)
        # the removed coefficients contributed to the mean
        self.intercept_ = float(y.mean() - matrix.mean(axis=0) @ self.coef_)


def ridge() -> Thresholded:
    """Makes a ridge regression; leave-one-out cross-validation chooses the penalty."""
    from sklearn.linear_model import RidgeCV

    return Thresholded(RidgeCV(alphas=PENALTIES))


def bayesian() -> Thresholded:
    """Makes a Bayesian ridge regression with one prior width for all components."""
    from sklearn.linear_model import BayesianRidge

    return Thresholded(BayesianRidge())


def ard() -> Thresholded:
    """Makes an automatic relevance determination with a prior width for each component."""
    from sklearn.linear_model import ARDRegression

    return Thresholded(ARDRegression())


def _posterior_errors(inner: Any, components: int) -> NDArray[np.float64]:
    """Returns posterior standard deviations; ARD has them only for the components that it kept."""
    variances = np.diag(inner.sigma_)
    if len(variances) == components:
        return np.sqrt(variances)
    errors = np.full(components, np.inf)
    errors[np.asarray(inner.lambda_) < inner.threshold_lambda] = np.sqrt(variances)
    return errors


def _ridge_errors(
    matrix: NDArray[np.float64], residuals: NDArray[np.float64], penalty: float
) -> NDArray[np.float64]:
    """Returns the standard errors of ridge coefficients, `(components,)`."""
    centered = matrix - matrix.mean(axis=0)
    gram = centered.T @ centered
    shrunk = np.linalg.inv(gram + penalty * np.eye(len(gram)))
    freedom = max(1.0, len(matrix) - 1 - np.trace(shrunk @ gram))
    variance = residuals @ residuals / freedom
    errors: NDArray[np.float64] = np.sqrt(
        np.maximum(variance * np.diag(shrunk @ gram @ shrunk), 1e-300)
    )
    return errors


RIDGE = Recovery(
    name="ridge", help="ridge, penalty by leave-one-out; then the threshold", make=ridge, order=5
)
BAYESIAN = Recovery(
    name="bayesian", help="Bayesian ridge; then the threshold", make=bayesian, order=6
)
ARD = Recovery(
    name="ard", help="automatic relevance determination; then the threshold", make=ard, order=7
)
