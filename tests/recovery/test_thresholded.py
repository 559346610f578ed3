"""Thresholds of dense regressions, against independently computed standard errors."""

import numpy as np
from sklearn.linear_model import BayesianRidge, RidgeCV

from broca import designs
from broca.recovery import Thresholded
from broca.recovery.thresholded import PENALTIES


def test_ridge_keeps_what_exceeds_the_threshold():
    """Standard errors come from the estimate's linear map, the spread from the coefficients."""
    masks = designs.stratified(150, 30, sparsity=0.1, seed=0)
    effects = np.where(np.arange(30) < 4, -0.3, 0.0)
    y = 1 + masks @ effects + np.random.default_rng(0).normal(0, 0.2, 150)
    fitted = Thresholded(RidgeCV(alphas=PENALTIES)).fit(masks, y)
    z = (y - y.mean()) / y.std()
    dense = RidgeCV(alphas=PENALTIES).fit(masks.astype(float), z)
    centered = masks - masks.mean(axis=0)
    # coef = map @ z, by solving for each unit response
    linear = np.linalg.lstsq(
        np.vstack([centered, np.sqrt(dense.alpha_) * np.eye(30)]),
        np.vstack([np.eye(150), np.zeros((30, 150))]),
        rcond=None,
    )[0]
    residual = z - dense.predict(masks.astype(float))
    freedom = 150 - 1 - np.trace(centered @ linear)
    errors = np.sqrt((linear**2).sum(axis=1) * (residual @ residual) / freedom)
    floor = np.median(np.abs(dense.coef_)) / 0.6745
    keep = np.abs(dense.coef_) > np.sqrt(2 * np.log(30)) * np.maximum(errors, floor)
    assert 0 < keep.sum() < 30
    np.testing.assert_array_equal(fitted.coef_ != 0, keep)
    np.testing.assert_allclose(fitted.coef_[keep], dense.coef_[keep] * y.std(), rtol=1e-9)


def test_intercept_fits_the_coefficients_that_are_left():
    """The mean prediction is the mean response."""
    masks = designs.stratified(100, 20, sparsity=0.2, seed=1)
    y = masks @ np.where(np.arange(20) < 2, -0.5, 0.02) + 3
    fitted = Thresholded(BayesianRidge()).fit(masks, y)
    np.testing.assert_allclose(fitted.predict(masks).mean(), y.mean())
