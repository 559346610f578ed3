"""Draws of sparse coefficients, compared with sums over all models and with scikit-learn."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge

from broca.searches.pooled.posterior import _PRIOR, _WIDTHS, Posterior, RowSums


def fitted(described, losses, items=None, *, seed=0, fits=1):
    """Returns the posterior after rows, and their evidence; each row has its item by default."""
    items = np.arange(len(losses)) if items is None else items
    posterior = Posterior(np.zeros(described.shape[1], dtype=int))
    evidence = [RowSums.of(described, losses, items, described.shape[1])]
    rng = np.random.default_rng(seed)
    for _ in range(fits):
        posterior.fit(evidence, [], rng)
    return posterior, evidence[0]


def test_means_are_those_of_a_sum_over_all_models():
    """Posterior means agree with the sum over all models of three coefficients."""
    rng = np.random.default_rng(0)
    described = (rng.random((60, 3)) < 0.4).astype(float)
    losses = described @ [0.12, 0.0, 0.03] + rng.normal(0, 0.15, 60)
    draws = []
    for seed in range(10):
        posterior, evidence = fitted(described, losses, seed=seed, fits=6)
        draws.append(posterior.task.mean(axis=0))
    noise = posterior.noise.deviations[0] ** 2 * evidence.design_effect
    logs, means = [], []
    for parts in product(range(len(_WIDTHS)), repeat=3):
        variances = np.square(_WIDTHS[list(parts)])
        covariance = described * variances @ described.T + noise * np.eye(60)
        counts = np.bincount(parts, minlength=len(_PRIOR))
        logs.append(
            multivariate_normal.logpdf(losses, cov=covariance)
            + (gammaln(_PRIOR + counts) - gammaln(_PRIOR)).sum()
        )
        means.append(variances * (described.T @ np.linalg.solve(covariance, losses)))
    weights = np.exp(np.array(logs) - max(logs))
    expected = weights @ np.array(means) / weights.sum()
    np.testing.assert_allclose(np.mean(draws, axis=0), expected, atol=0.006)


def test_strong_effects_are_what_a_ridge_says():
    """With many rows and no zero coefficient the fit agrees with scikit-learn's Bayesian ridge."""
    rng = np.random.default_rng(1)
    described = (rng.random((3000, 6)) < 0.3).astype(float)
    losses = described @ [0.3, 0.2, -0.2, 0.4, 0.1, 0.25] + rng.normal(0, 0.2, 3000)
    posterior, _ = fitted(described, losses, fits=3)
    reference = BayesianRidge(fit_intercept=False).fit(described, losses)
    np.testing.assert_allclose(posterior.task.mean(axis=0), reference.coef_, atol=0.005)
    errors = posterior.task.std(axis=0)
    np.testing.assert_allclose(errors, np.sqrt(np.diag(reference.sigma_)), rtol=0.25)
    assert posterior.noise.deviations[0] == pytest.approx(0.2, rel=0.05)


def test_noise_is_estimated_for_each_group():
    """Noise is estimated separately for a noisy and a quiet group of rows."""
    rng = np.random.default_rng(4)
    described = (rng.random((800, 5)) < 0.4).astype(float)
    losses = 0.3 * described[:, 2] + rng.normal(0, np.repeat([0.4, 0.05], 400))
    items = np.arange(400)
    posterior = Posterior(np.zeros(5, dtype=int))
    halves = [slice(0, 400), slice(400, 800)]
    evidence = [RowSums.of(described[half], losses[half], items, 5) for half in halves]
    posterior.fit(evidence, [], np.random.default_rng(0))
    np.testing.assert_allclose(posterior.noise.deviations, [0.4, 0.05], rtol=0.1)


def test_rows_that_repeat_an_item_count_for_less():
    """Rows on 30 items with different effects have a design effect and wider errors."""
    rng = np.random.default_rng(5)
    described = (rng.random((600, 4)) < 0.5).astype(float)
    items = np.repeat(np.arange(30), 20)
    effects = rng.normal(0.5, 0.3, (30, 4))
    losses = (described * effects[items]).sum(axis=1) + rng.normal(0, 0.1, 600)
    clustered = RowSums.of(described, losses, items, 4).design_effect
    apart = RowSums.of(described, losses, np.arange(600), 4).design_effect
    assert clustered > 2
    assert apart == pytest.approx(1, abs=1e-9)
    sure = fitted(described, losses)[0].task.var(axis=0)
    unsure = fitted(described, losses, items)[0].task.var(axis=0)
    assert unsure.mean() > 2 * sure.mean()


def test_what_rows_do_not_tell_apart_is_a_loss_of_all():
    """Few rows of the others shrink their losses without attributing these to the task."""
    effects = np.array([0.15, 0.1, 0.12, 0.08] + [0.0] * 16)
    worth = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        described = (rng.random((1200, 20)) < 0.2).astype(float)
        evidence = []
        for rows in (described, described[:240]):
            losses = rows @ effects + rng.normal(0, 0.3, len(rows))
            evidence.append(RowSums.of(rows, losses, np.arange(len(rows)), 20))
        posterior = Posterior(np.zeros(20, dtype=int))
        posterior.fit(evidence[:1], evidence[1:], rng)
        worth.append((posterior.task - posterior.others).mean(axis=0)[:4])
    assert abs(np.mean(worth)) < 0.015
