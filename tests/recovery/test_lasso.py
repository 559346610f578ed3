"""The paper's Lasso."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Lasso

from broca import designs
from broca.recovery import RECOVERIES, PaperLasso


@pytest.fixture
def problem():
    """200 masks of 60 components, three of which matter."""
    masks = designs.stratified(200, 60, sparsity=0.1, seed=0)
    effects = np.zeros(60)
    effects[[3, 20, 41]] = [-0.4, -0.2, -0.1]
    responses = 0.9 + masks @ effects + np.random.default_rng(0).normal(0, 0.02, 200)
    return masks, responses, effects


def test_equals_scikit_learn_on_standardized_responses(problem):
    """The default equals scikit-learn's Lasso with alpha 0.01 on z-scored responses."""
    masks, responses, _ = problem
    z = (responses - responses.mean()) / responses.std()
    reference = Lasso(alpha=0.01, max_iter=5000).fit(masks.astype(float), z)
    fitted = PaperLasso().fit(masks, responses)
    np.testing.assert_allclose(fitted.coef_, reference.coef_ * responses.std(), atol=1e-10)
    np.testing.assert_allclose(
        fitted.predict(masks),
        reference.predict(masks.astype(float)) * responses.std() + responses.mean(),
        atol=1e-10,
    )


@pytest.mark.parametrize("baseline", [None, 0.9], ids=["fitted", "fixed"])
def test_solution_satisfies_the_optimality_conditions(problem, baseline):
    """The gradient of the loss is alpha at a coefficient, and at most alpha at a zero."""
    masks, responses, _ = problem
    fit = PaperLasso(baseline=baseline).fit(masks, responses)
    residual = (responses - fit.predict(masks)) / responses.std()
    gradient = masks.T @ residual / len(masks)
    active = fit.coef_ != 0
    assert active.any()
    assert not active.all()
    np.testing.assert_allclose(gradient[active], 0.01 * np.sign(fit.coef_[active]), atol=2e-4)
    assert (np.abs(gradient[~active]) <= 0.01 + 2e-4).all()


def test_intercept_can_be_fixed_at_the_baseline(problem):
    """A fixed intercept is the predicted response of the intact model (eq. 1)."""
    masks, responses, effects = problem
    fit = PaperLasso(baseline=0.9).fit(masks, responses)
    assert fit.intercept_ == 0.9
    assert fit.predict(np.zeros((1, 60))) == 0.9
    np.testing.assert_allclose(fit.coef_, effects, atol=0.05)


@pytest.mark.parametrize("baseline", [None, 1.0])
def test_constant_responses_are_no_evidence(baseline):
    """If all masks have the same response, every coefficient is exactly zero."""
    masks = designs.stratified(20, 10, sparsity=0.2, seed=0)
    fit = PaperLasso(baseline=baseline).fit(masks, np.ones(20))
    assert not fit.coef_.any()
    assert fit.intercept_ == 1.0


def test_recoveries_are_scikit_learn_estimators(problem):
    """Each recovery can be cloned, has default parameters and finds the strongest effect."""
    masks, responses, _ = problem
    for recovery in RECOVERIES.values():
        fit = clone(recovery.make()).fit(masks, responses)
        assert np.argmin(fit.coef_) == 3
