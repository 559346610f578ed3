"""The bounded Lasso: its certificate of optimality, and its bounds."""

import numpy as np
import pytest
from sklearn.linear_model import LassoCV

from broca.recovery import NonPositiveLasso


def problem(*, rows=300, components=30, seed=0):
    """Masks and responses in which columns 2 and 9 harm and column 4 seems to help."""
    rng = np.random.default_rng(seed)
    masks = rng.random((rows, components)) < 0.2
    effects = np.zeros(components)
    effects[[2, 9, 4]] = -0.5, -0.3, 0.4
    return masks, 1.0 + masks @ effects + rng.normal(0, 0.05, rows)


def test_no_coefficient_is_positive_and_harm_is_found():
    """The helping column gets exactly zero."""
    masks, responses = problem()
    fitted = NonPositiveLasso().fit(masks, responses)
    assert (fitted.coef_ <= 0).all()
    assert fitted.coef_[4] == 0
    assert fitted.coef_[2] < fitted.coef_[9] < -0.2


def test_is_optimal_for_the_penalty_that_it_chose():
    """The Karush-Kuhn-Tucker conditions hold: no column's gradient exceeds the penalty."""
    masks, responses = problem(seed=1)
    matrix = masks.astype(float)
    fitted = NonPositiveLasso().fit(masks, responses)
    alpha = LassoCV(cv=5, alphas=20, positive=True).fit(matrix, -responses).alpha_
    centered = matrix - matrix.mean(axis=0)
    residual = -(responses - fitted.predict(masks))
    pull = centered.T @ residual / len(responses)
    active = fitted.coef_ < 0
    assert (pull <= alpha * (1 + 1e-3)).all()
    np.testing.assert_allclose(pull[active], alpha, rtol=2e-2)


def test_constant_responses_give_no_effects():
    """Constant responses give zero coefficients."""
    fitted = NonPositiveLasso().fit(np.eye(12, dtype=bool), np.full(12, 0.7))
    assert not fitted.coef_.any()
    assert fitted.intercept_ == pytest.approx(0.7)
