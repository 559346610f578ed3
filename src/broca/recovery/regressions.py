"""The regressions of responses on masks: scikit-learn's, guarded, thresholded or bounded.

Masks are 1 where a component was ablated, `(masks, components)`; responses are means under each
mask, `(masks,)`. A fitted `coef_` has the effect of ablating each component in the units of the
responses, exactly 0 without evidence, and `intercept_` the response of the intact model.
"""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNetCV,
    Lasso,
    LassoCV,
    OrthogonalMatchingPursuitCV,
    RidgeCV,
)

from broca.measurement import Floats

PENALTIES = np.logspace(-2, 4, 25)
"""Candidate penalties of ridge."""
_SMALLEST = 0.01
"""Smallest penalty, as a share of the penalty that makes all coefficients zero: smaller penalties
take long and fit noise."""
_MEDIAN_OF_NORMAL = 0.6745
"""Median of the absolute values of standard normal numbers."""


def shipped(name: str) -> Any:
    """Makes the estimator of a recovery of `broca.recovery.RECOVERIES`."""
    estimators: dict[str, Any] = {
        # Bair et al., arXiv 2603.03335, section 4.1 and released code
        "lasso": Standardized(Lasso(alpha=0.01, max_iter=5000, random_state=0), fewest=1),
        "lasso-cv": Standardized(LassoCV(cv=5, alphas=30, eps=_SMALLEST, random_state=0)),
        "omp": Standardized(OrthogonalMatchingPursuitCV(cv=5)),
        "elastic-net": Standardized(
            ElasticNetCV(cv=5, alphas=30, eps=_SMALLEST, l1_ratio=[0.5, 0.8, 0.95], random_state=0)
        ),
        "ridge": Thresholded(RidgeCV(alphas=PENALTIES)),
        "bayesian": Thresholded(BayesianRidge()),
        "ard": Thresholded(ARDRegression()),
        "non-positive": NonPositiveLasso(),
    }
    return estimators[name]


class _Linear(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A regression with coefficients and an intercept."""

    coef_: Floats
    intercept_: float

    def predict(self, masks: ArrayLike) -> Floats:
        """Predicts the response under each mask, `(masks,)`."""
        predicted: Floats = np.asarray(masks, dtype=float) @ self.coef_
        return predicted + self.intercept_


class Standardized(_Linear):
    """A scikit-learn regression on standardized responses, with zero effects for too few data.

    If all responses are equal, cross-validation fails or there are fewer than `fewest` masks, all
    coefficients are zero.

    Args:
        inner: The regression, with `coef_` and `intercept_` after its fit.
        fewest: Minimum number of masks for a fit.
        baseline: Response of the intact model. If given, the intercept is fixed at this value, as
            in eq. (1) of arXiv 2603.03335; else it is fitted, as in the released code.

    Attributes:
        inner_: The fitted regression; None if nothing was fitted.
    """

    def __init__(self, inner: Any, fewest: int = 10, baseline: float | None = None) -> None:
        self.inner = inner
        self.fewest = fewest
        self.baseline = baseline

    def fit(self, masks: ArrayLike, responses: ArrayLike) -> Self:
        """Fits the coefficients."""
        matrix, y = np.asarray(masks, dtype=float), np.asarray(responses, dtype=float)
        spread, center = y.std(), float(y.mean() if self.baseline is None else self.baseline)
        self.inner_, self.coef_, self.intercept_ = None, np.zeros(matrix.shape[1]), center
        if spread == 0 or len(y) < self.fewest:
            return self
        self.inner_ = clone(self.inner)
        if self.baseline is not None:
            self.inner_.set_params(fit_intercept=False)
        # at the ends of a path a fit may stop early or add nothing: other fits are chosen
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                self.inner_.fit(matrix, (y - center) / spread)
            except ValueError as error:
                if "empty sequence" not in str(error):
                    raise
                self.inner_ = None  # a pursuit, where the responses beside a fold are equal
                return self
        self.coef_ = np.asarray(self.inner_.coef_, dtype=float) * spread
        self.intercept_ = float(center + self.inner_.intercept_ * spread)
        return self


class NonPositiveLasso(_Linear):
    """Lasso with coefficients of zero or below and a penalty from cross-validation.

    An ablation that appears to help is nearly always noise. Without positive coefficients, the
    noise of hundreds of harmless components cannot cancel the effects of the few that matter.

    Args:
        penalty: A fixed penalty; five-fold cross-validation is then skipped.

    Attributes:
        penalty_: The penalty; None if nothing was fitted.
    """

    def __init__(self, penalty: float | None = None) -> None:
        self.penalty = penalty

    def fit(self, masks: ArrayLike, responses: ArrayLike) -> Self:
        """Fits the coefficients."""
        matrix, y = np.asarray(masks, dtype=float), np.asarray(responses, dtype=float)
        self.penalty_ = self.penalty
        self.coef_, self.intercept_ = np.zeros(matrix.shape[1]), float(y.mean())
        if y.std() == 0 or len(y) < 10:
            return self
        # at the smallest penalties the path may stop early: another penalty is chosen
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            if self.penalty is None:
                inner = LassoCV(cv=5, alphas=20, positive=True, random_state=0)
                self.penalty_ = float(inner.fit(matrix, -y).alpha_)
            else:
                inner = Lasso(alpha=self.penalty, positive=True, random_state=0).fit(matrix, -y)
        self.coef_, self.intercept_ = 0.0 - inner.coef_, -float(inner.intercept_)
        return self


class Thresholded(_Linear):
    """A dense regression that sets small coefficients to exactly zero.

    A coefficient is kept if its absolute value exceeds `sqrt(2 log components)` standard errors,
    about the largest of as many normal errors (the universal threshold of Donoho and Johnstone
    1994). The standard error comes from the posterior, `sigma_`, if the regression has a posterior,
    else from a ridge estimate with the chosen penalty. Its lower bound is the spread of all
    coefficients by their median: most components have no effect, and standard errors are too small
    with more components than masks.

    Args:
        inner: `RidgeCV`, `BayesianRidge` or `ARDRegression`.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def fit(self, masks: ArrayLike, responses: ArrayLike) -> Self:
        """Fits the coefficients."""
        matrix, y = np.asarray(masks, dtype=float), np.asarray(responses, dtype=float)
        dense = Standardized(self.inner).fit(matrix, y)
        self.coef_, self.intercept_ = dense.coef_, dense.intercept_
        if dense.inner_ is None:
            return self
        if hasattr(dense.inner_, "sigma_"):
            errors = _posterior_errors(dense.inner_, matrix.shape[1]) * y.std()
        else:
            errors = _ridge_errors(matrix, y - dense.predict(matrix), float(dense.inner_.alpha_))
        errors = np.maximum(errors, np.median(np.abs(dense.coef_)) / _MEDIAN_OF_NORMAL)
        threshold = np.sqrt(2 * np.log(max(2, matrix.shape[1])))
        self.coef_ = np.where(np.abs(dense.coef_) > threshold * errors, dense.coef_, 0.0)
        # the removed coefficients contributed to the mean
        self.intercept_ = float(y.mean() - matrix.mean(axis=0) @ self.coef_)
        return self


def _posterior_errors(inner: Any, components: int) -> Floats:
    """Returns posterior standard deviations; ARD has them only for the components that it kept."""
    variances = np.diag(inner.sigma_)
    if len(variances) == components:
        return np.sqrt(variances)
    errors = np.full(components, np.inf)
    errors[np.asarray(inner.lambda_) < inner.threshold_lambda] = np.sqrt(variances)
    return errors


def _ridge_errors(matrix: Floats, residuals: Floats, penalty: float) -> Floats:
    """Returns the standard errors of ridge coefficients, `(components,)`."""
    centered = matrix - matrix.mean(axis=0)
    gram = centered.T @ centered
    shrunk = np.linalg.inv(gram + penalty * np.eye(len(gram)))
    freedom = max(1.0, len(matrix) - 1 - np.trace(shrunk @ gram))
    variance = residuals @ residuals / freedom
    variances: Floats = variance * np.diag(shrunk @ gram @ shrunk)
    return np.sqrt(np.maximum(variances, 1e-300))
