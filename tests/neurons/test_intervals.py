"""Intervals of means and of scores, by resampling items."""

import numpy as np
import pytest
from neurons.conftest import letters

from broca.neurons.intervals import lost, mean_interval, scored


def test_intervals_hold_the_mean_and_shrink():
    """Against the normal interval, for many values; repeatable."""
    values = np.random.default_rng(0).normal(1, 2, 400)
    interval = mean_interval(values, seed=0)
    half = 1.96 * values.std() / 20
    assert interval == mean_interval(values, seed=0)
    assert interval.value == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - half, abs=0.05)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.05)


def test_values_that_are_not_known_are_left_out():
    """NaN is the overlap of empty sets; where nothing is known the interval is NaN."""
    some = mean_interval([1.0, float("nan"), 3.0], seed=0)
    assert some.value == 2
    assert np.isnan(mean_interval([float("nan")], seed=0).value)
    assert np.isnan(mean_interval([], seed=0).low)


def test_scores_and_losses_are_the_tasks_own(ask):
    """The mean of responses, and what is lost of it by the same items."""
    trial = ask(letters(4)).run.tasks.trial("report")
    before, after = np.array([1.0, 1, 1, 0]), np.array([1.0, 0, 0, 0])
    assert scored(trial, "letters", before, seed=0).value == 0.75
    assert lost(trial, "letters", before, after, seed=0).value == 0.5
