"""Recoveries by name, and checks of estimators."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, Ridge

from broca import designs
from broca.errors import BadInput, UnknownName
from broca.measurement import Measurement
from broca.recovery import RECOVERIES, make_recovery
from broca.searches import Problem, make_search, run
from broca.testing import planted_problem


def problem(*, masks=120, components=40, noise=0.03, seed=0):
    """Masks and responses in which columns 3, 20 and 31 harm."""
    design = designs.stratified(masks, components, sparsity=0.1, seed=seed)
    effects = np.zeros(components)
    effects[[3, 20, 31]] = -0.4, -0.3, -0.2
    noisy = np.random.default_rng(seed).normal(0, noise, masks)
    return design, 1.0 + design @ effects + noisy, effects


@pytest.mark.parametrize("name", RECOVERIES)
def test_each_finds_what_matters(name):
    """The three columns come first with nearly their true effects; predictions are close."""
    masks, responses, effects = problem()
    fitted = make_recovery(name).fit(masks, responses)
    assert np.argsort(fitted.coef_)[:3].tolist() == [3, 20, 31]
    np.testing.assert_allclose(fitted.coef_[[3, 20, 31]], effects[[3, 20, 31]], atol=0.06)
    assert fitted.intercept_ == pytest.approx(1.0, abs=0.05)
    np.testing.assert_allclose(
        fitted.predict(masks), masks @ fitted.coef_ + fitted.intercept_, atol=1e-9
    )


@pytest.mark.parametrize("name", RECOVERIES)
def test_each_sees_nothing_where_nothing_varies(name):
    """Equal responses give coefficients of exactly zero."""
    masks, _, _ = problem(masks=20)
    fitted = make_recovery(name).fit(masks, np.full(20, 0.5))
    assert not fitted.coef_.any()
    assert fitted.intercept_ == 0.5


@pytest.mark.parametrize("name", ["ridge", "bayesian", "ard", "stability"])
def test_thresholds_leave_little_of_noise(name):
    """At most two of 40 columns without effect are kept, in each of three problems."""
    for seed in range(3):
        masks, _, _ = problem(seed=seed)
        noise = np.random.default_rng(seed).normal(size=len(masks))
        assert (make_recovery(name).fit(masks, noise).coef_ != 0).sum() <= 2


@pytest.mark.parametrize("recovery", [Ridge(alpha=0.1), LinearRegression()], ids=repr)
def test_any_linear_regressor_of_scikit_learn_can_be_passed(recovery):
    """A search takes the estimator, its record names it, and the estimator stays unfitted."""
    planted = planted_problem(components=30, effect=0.2, noise=0.02, seed=1)
    search = make_search(
        "cs-stratified", Problem(30, np.arange(10), 5, None, 0), recovery=recovery, resamples=5
    )
    ranking = run(search, planted.run)
    assert set(ranking.order[:5]) == set(planted.planted)
    assert ranking.options["recovery"] == repr(recovery)
    assert not hasattr(recovery, "coef_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recovery": "laso"}, "did you mean 'lasso'"),
        ({"recovery": Ridge}, r"is a class: give an object"),
        ({"recovery": object()}, "not a scikit-learn regressor: it lacks fit"),
        ({"recovery": "omp", "intercept": "baseline"}, "not compatible with intercept=baseline"),
    ],
)
def test_parts_that_do_not_fit_are_refused_before_work_starts(options, message):
    """The message names the unsuitable part and the cause."""
    with pytest.raises(BadInput, match=message):
        make_search("cs-stratified", Problem(30, np.arange(10), 5, None, 0), **options)


def test_recovery_without_coefficients_is_refused():
    """A recovery without `coef_` is refused after its fit, since `coef_` exists only then."""
    search = make_search(
        "cs-stratified", Problem(30, np.arange(4), 5, 80, 0), recovery=KMeans(n_clusters=2)
    )
    with pytest.raises(BadInput, match="has no coef_"):
        run(search, lambda plan: Measurement(plan, np.ones(len(plan))))


def test_unknown_recovery_is_an_unknown_name():
    """An unknown recovery raises `UnknownName`, like unknown models and tasks."""
    with pytest.raises(UnknownName, match="in Python any scikit-learn regressor"):
        make_recovery("magic")
