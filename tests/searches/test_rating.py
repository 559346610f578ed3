"""Intervals of means, and the selection of harmful components."""

import numpy as np
from scipy import stats

from broca.searches.rating import harmful, mean_with_interval


def test_interval_is_students():
    """Intervals equal those of SciPy."""
    samples = np.random.default_rng(0).normal(size=(9, 3))
    mean, intervals = mean_with_interval(samples)
    for column in range(3):
        expected = stats.t.interval(
            0.9, 8, loc=samples[:, column].mean(), scale=stats.sem(samples[:, column])
        )
        np.testing.assert_allclose(intervals[column], expected)
    np.testing.assert_allclose(mean, samples.mean(axis=0))


def test_a_single_sample_has_no_interval():
    """A single sample has a mean and no interval."""
    mean, intervals = mean_with_interval(np.array([[1.0, 2.0]]))
    np.testing.assert_array_equal(mean, [1.0, 2.0])
    assert np.isnan(intervals).all()


def test_only_sure_harm_is_selected_and_leads_the_order():
    """Uncertain, tiny and positive effects are left out, and the selection leads the order."""
    effects = np.array([-0.5, -0.9, -0.001, 0.3, -0.4])
    intervals = effects[:, None] + np.array([[-0.1, 0.1]])
    intervals[1, 1] = 0.05
    intervals[2, 1] = -0.0005
    order, selected, reason = harmful(effects, intervals, 5, reason="nothing")
    assert selected == (0, 4)
    assert order == (0, 4, 1, 2, 3)
    assert reason == ""


def test_rounding_is_no_effect():
    """Effects of the size of rounding errors are not selected, and the reason is given."""
    effects = np.full(3, -1e-16)
    assert harmful(effects, np.full((3, 2), np.nan), 3, reason="nothing")[1:] == ((), "nothing")
