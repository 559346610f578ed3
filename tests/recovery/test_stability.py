"""Stability selection: kept components and reproducibility."""

import numpy as np

from broca import designs
from broca.recovery import StabilitySelection


def test_effects_are_least_squares_on_what_was_kept():
    """The effects of kept components are not shrunk."""
    masks = designs.stratified(160, 40, sparsity=0.1, seed=0)
    noise = np.random.default_rng(0).normal(0, 0.05, 160)
    y = 1 - 0.4 * masks[:, 5] - 0.3 * masks[:, 11] + noise
    fitted = StabilitySelection().fit(masks, y)
    selected = np.flatnonzero(fitted.coef_)
    assert {5, 11} <= set(selected.tolist())
    assert (fitted.frequency_[selected] >= 0.8).all()
    assert (np.delete(fitted.frequency_, selected) < 0.8).all()
    matrix = np.column_stack([np.ones(160), masks[:, selected]])
    solution = np.linalg.solve(matrix.T @ matrix, matrix.T @ y)
    np.testing.assert_allclose([fitted.intercept_, *fitted.coef_[selected]], solution, atol=1e-9)


def test_same_seed_same_frequencies():
    """The same seed gives the same frequencies; another seed draws other halves."""
    masks = designs.stratified(60, 30, sparsity=0.1, seed=0)
    y = np.random.default_rng(1).normal(size=60)
    first, again, other = (StabilitySelection(seed=s).fit(masks, y).frequency_ for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
