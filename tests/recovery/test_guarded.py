"""Guarded regressions: scikit-learn's coefficients, and zeros instead of failures."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNetCV, LassoCV, OrthogonalMatchingPursuitCV, Ridge

from broca.recovery.guarded import Guarded, elastic_net, lasso_cv, matching_pursuit


@pytest.fixture(scope="module")
def problem():
    """Masks of 12 components and responses, far from zero and small, in which two matter."""
    rng = np.random.default_rng(0)
    masks = rng.random((80, 12)) < 0.3
    responses = 40 + 0.02 * (-1.0 * masks[:, 3] + 0.5 * masks[:, 7] + rng.normal(0, 0.1, 80))
    return masks, responses


@pytest.mark.parametrize(
    ("make", "plain"),
    [
        (lasso_cv, LassoCV(cv=5, alphas=30, eps=0.01)),
        (elastic_net, ElasticNetCV(cv=5, alphas=30, eps=0.01, l1_ratio=[0.5, 0.8, 0.95])),
        (matching_pursuit, OrthogonalMatchingPursuitCV(cv=5)),
    ],
)
def test_coefficients_are_those_of_scikit_learn_in_the_responses_units(problem, make, plain):
    """Coefficients equal a manual fit to standardized responses, scaled back."""
    masks, responses = problem
    recovered = make().fit(masks, responses)
    standardized = (responses - responses.mean()) / responses.std()
    plain.fit(masks.astype(float), standardized)
    np.testing.assert_allclose(recovered.coef_, plain.coef_ * responses.std(), atol=1e-12)
    expected = responses.mean() + plain.intercept_ * responses.std()
    assert recovered.intercept_ == pytest.approx(expected)
    assert set(np.argsort(-np.abs(recovered.coef_))[:2]) == {3, 7}


def test_units_of_the_responses_scale_the_effects(problem):
    """Responses in points give effects a hundred times as large; an offset changes no effect."""
    masks, responses = problem
    shares, points = lasso_cv().fit(masks, responses), lasso_cv().fit(masks, 100 * responses + 5)
    np.testing.assert_allclose(points.coef_, 100 * shares.coef_, rtol=1e-6, atol=1e-9)
    assert points.intercept_ == pytest.approx(100 * shares.intercept_ + 5)


@pytest.mark.parametrize("masks", [9, 40])
def test_without_anything_to_say_all_effects_are_zero(masks):
    """Too few masks or equal responses give zero effects; the intercept is the mean."""
    drawn = np.random.default_rng(1).random((masks, 6)) < 0.5
    responses = np.full(masks, 0.7) if masks == 40 else np.linspace(0, 1, masks)
    fitted = Guarded(Ridge()).fit(drawn, responses)
    assert fitted.inner_ is None
    assert not fitted.coef_.any()
    assert fitted.predict(drawn) == pytest.approx(np.full(masks, responses.mean()))


def test_the_fitted_regression_can_be_looked_at(problem):
    """`inner_` is the fitted regression, and the given regression stays unfitted."""
    inner = LassoCV(cv=5, alphas=30)
    fitted = Guarded(inner).fit(*problem)
    assert fitted.inner_.alpha_ > 0
    assert not hasattr(inner, "alpha_")
