"""Recoveries by name: against scikit-learn, optimality conditions, and checks of estimators."""

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.cluster import DBSCAN, KMeans
from sklearn.pipeline import make_pipeline
from task_problems import searched

from broca import designs
from broca.errors import BadInput, UnknownName
from broca.recovery import RECOVERIES, make_recovery
from broca.recovery.regressions import PENALTIES
from broca.searches import METHODS, Problem
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
    """Equal responses give coefficients of exactly zero; one that differs gives finite ones."""
    masks, _, _ = problem(masks=20)
    fitted = make_recovery(name).fit(masks, np.full(20, 0.5))
    assert not fitted.coef_.any()
    assert fitted.intercept_ == 0.5
    assert np.isfinite(make_recovery(name).fit(masks, np.eye(20)[3]).coef_).all()


@pytest.mark.parametrize("name", ["ridge", "bayesian", "ard"])
def test_thresholds_leave_little_of_noise(name):
    """At most two of 40 columns without effect are kept, in each of three problems."""
    for seed in range(3):
        masks, _, _ = problem(seed=seed)
        noise = np.random.default_rng(seed).normal(size=len(masks))
        assert (make_recovery(name).fit(masks, noise).coef_ != 0).sum() <= 2


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("lasso", linear_model.Lasso(alpha=0.01, max_iter=5000)),
        ("lasso-cv", linear_model.LassoCV(cv=5, alphas=30, eps=0.01)),
        (
            "elastic-net",
            linear_model.ElasticNetCV(cv=5, alphas=30, eps=0.01, l1_ratio=[0.5, 0.8, 0.95]),
        ),
        ("omp", linear_model.OrthogonalMatchingPursuitCV(cv=5)),
    ],
)
def test_coefficients_are_those_of_scikit_learn_in_the_responses_units(name, plain):
    """Coefficients equal a manual fit to standardized responses, scaled back.

    Responses in points give effects a hundred times as large; an offset changes no effect.
    """
    masks, responses, _ = problem()
    recovered = make_recovery(name).fit(masks, responses)
    plain.fit(masks.astype(float), (responses - responses.mean()) / responses.std())
    np.testing.assert_allclose(recovered.coef_, plain.coef_ * responses.std(), atol=1e-10)
    expected = responses.mean() + plain.intercept_ * responses.std()
    assert recovered.intercept_ == pytest.approx(expected)
    points = make_recovery(name).fit(masks, 100 * responses + 5)
    np.testing.assert_allclose(points.coef_, 100 * recovered.coef_, rtol=1e-6, atol=1e-9)


def test_lasso_with_a_fixed_intercept_satisfies_the_optimality_conditions():
    """The gradient of the loss is alpha at a coefficient, and at most alpha at a zero.

    The intercept is the predicted response of the intact model (eq. 1).
    """
    masks, responses, _ = problem(masks=200, components=60)
    fit = make_recovery("lasso", baseline=True).set_params(baseline=0.9).fit(masks, responses)
    gradient = masks.T @ ((responses - fit.predict(masks)) / responses.std()) / len(masks)
    active = fit.coef_ != 0
    assert active.any()
    assert not active.all()
    np.testing.assert_allclose(gradient[active], 0.01 * np.sign(fit.coef_[active]), atol=2e-4)
    assert (np.abs(gradient[~active]) <= 0.01 + 2e-4).all()
    assert fit.predict(np.zeros((1, 60))) == 0.9


def test_non_positive_lasso_is_optimal_for_the_penalty_that_it_chose():
    """The Karush-Kuhn-Tucker conditions hold; a column that seems to help gets exactly zero."""
    rng = np.random.default_rng(1)
    masks = rng.random((300, 30)) < 0.2
    matrix = masks.astype(float)
    effects = np.zeros(30)
    effects[[2, 9, 4]] = -0.5, -0.3, 0.4
    responses = 1.0 + masks @ effects + rng.normal(0, 0.05, 300)
    fitted = make_recovery("non-positive").fit(masks, responses)
    assert fitted.coef_[2] < fitted.coef_[9] < -0.2
    assert fitted.coef_[4] == 0
    alpha = linear_model.LassoCV(cv=5, alphas=20, positive=True).fit(matrix, -responses).alpha_
    pull = (matrix - matrix.mean(axis=0)).T @ (fitted.predict(masks) - responses) / len(responses)
    active = fitted.coef_ < 0
    assert (pull <= alpha * (1 + 1e-3)).all()
    np.testing.assert_allclose(pull[active], alpha, rtol=2e-2)


def test_ridge_keeps_what_exceeds_the_threshold():
    """Standard errors come from the estimate's linear map, the spread from the coefficients."""
    masks = designs.stratified(150, 30, sparsity=0.1, seed=0)
    effects = np.where(np.arange(30) < 4, -0.3, 0.0)
    y = 1 + masks @ effects + np.random.default_rng(0).normal(0, 0.2, 150)
    fitted = make_recovery("ridge").fit(masks, y)
    z = (y - y.mean()) / y.std()
    dense = linear_model.RidgeCV(alphas=PENALTIES).fit(masks.astype(float), z)
    centered = masks - masks.mean(axis=0)
    # coef = map @ z, by solving for each unit response
    taller = np.vstack([centered, np.sqrt(dense.alpha_) * np.eye(30)])
    units = np.vstack([np.eye(150), np.zeros((30, 150))])
    linear = np.linalg.lstsq(taller, units, rcond=None)[0]
    residual = z - dense.predict(masks.astype(float))
    freedom = 150 - 1 - np.trace(centered @ linear)
    errors = np.sqrt((linear**2).sum(axis=1) * (residual @ residual) / freedom)
    floor = np.median(np.abs(dense.coef_)) / 0.6745
    keep = np.abs(dense.coef_) > np.sqrt(2 * np.log(30)) * np.maximum(errors, floor)
    assert 0 < keep.sum() < 30
    np.testing.assert_array_equal(fitted.coef_ != 0, keep)
    np.testing.assert_allclose(fitted.coef_[keep], dense.coef_[keep] * y.std(), rtol=1e-9)


@pytest.mark.parametrize(
    "recovery", [linear_model.Ridge(alpha=0.1), linear_model.LinearRegression()], ids=repr
)
def test_any_linear_regressor_of_scikit_learn_can_be_passed(recovery):
    """A search takes the estimator, its record names it, and the estimator stays unfitted."""
    planted = planted_problem(components=30, effect=0.2, noise=0.02, seed=1)
    problem = Problem(30, np.arange(10), 5, None, 0)
    ranking, _ = searched("cs-stratified", planted.run, problem, recovery=recovery, resamples=5)
    assert set(ranking.order[:5]) == set(planted.planted)
    assert ranking.options["recovery"] == repr(recovery)
    assert not hasattr(recovery, "coef_")


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"recovery": "laso"}, UnknownName, "did you mean 'lasso'"),
        ({"recovery": "magic"}, UnknownName, "recovery 'magic' is unknown; use lasso"),
        ({"recovery": linear_model.Ridge}, BadInput, "an instance"),
        ({"recovery": object()}, BadInput, "is no regressor: Cannot clone"),
        ({"recovery": DBSCAN()}, BadInput, "is no regressor: it has no `predict`"),
        ({"recovery": "ridge", "intercept": "baseline"}, BadInput, "use intercept=fitted"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused_before_work_starts(options, kind, message):
    """The message names the unsuitable part and the cause."""
    with pytest.raises(kind, match=message):
        METHODS["cs-stratified"].strategy(options)


@pytest.mark.parametrize(
    ("recovery", "message"),
    [
        (KMeans(2), "no finite coefficients"), (linear_model.LassoCV(cv=99), "failed: "),
        (make_pipeline(5, linear_model.Ridge()), "failed: All intermediate steps"),
    ],
)  # fmt: skip
def test_recovery_without_coefficients_is_refused(recovery, message):
    """A recovery without `coef_`, or whose fit fails, is refused after or by its fit."""
    problem = Problem(30, np.arange(4), 5, 80, 0)
    with pytest.raises(BadInput, match=message):
        searched("cs-stratified", planted_problem(components=30).run, problem, recovery=recovery)
