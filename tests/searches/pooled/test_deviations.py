"""Deviations of measured sets from a regression: their variance, and their estimates from rows."""

import numpy as np
import pytest

from broca.searches.pooled.deviations import Deviations

COUNT = 8


def masks_of(rng, sets):
    """Distinct random sets of three of the components."""
    drawn = set()
    while len(drawn) < sets:
        drawn.add(tuple(sorted(rng.choice(COUNT, 3, replace=False).tolist())))
    masks = np.zeros((sets, COUNT), dtype=bool)
    for mask, members in zip(masks, sorted(drawn), strict=True):
        mask[list(members)] = True
    return masks


def zero(sets):
    """A regression that predicts no loss."""
    return np.zeros(len(sets))


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.3])
def test_spread_of_the_deviations_is_estimated(spread):
    """The estimated spread and noise are close to those that the rows are drawn with."""
    rng = np.random.default_rng(0)
    sets = masks_of(rng, 50)
    true = rng.normal(0, spread, len(sets))
    place = np.repeat(np.arange(len(sets)), 20)
    losses = true[place] + rng.normal(0, 0.2, len(place))
    deviations = Deviations.of(sets[place], losses, zero)
    assert deviations.spread == pytest.approx(spread, abs=0.04)
    assert deviations.noise == pytest.approx(0.2, abs=0.02)


def test_expected_deviation_is_the_posterior_mean():
    """The expected deviation and its variance equal those of a normal mean with a normal prior."""
    masks = np.eye(COUNT, dtype=bool)[[0] * 4 + [1]]
    losses = np.array([0.5, 0.7, 0.5, 0.7, 0.0])
    deviations = Deviations.of(masks, losses, lambda sets: 0.1 * sets.sum(axis=1))
    expected, weight, variance = deviations.expected(np.eye(COUNT, dtype=bool)[[0, 2]])
    prior, noise = deviations.spread**2, deviations.noise**2
    precision = 1 / prior + 4 / noise
    np.testing.assert_allclose(variance, [1 / precision, prior])
    np.testing.assert_allclose(expected, [0.5 * 4 / noise / precision, 0])
    np.testing.assert_allclose(weight, [4 / noise / precision, 0])


def test_a_regression_that_fits_leaves_no_deviations():
    """Where all sets lose what is predicted, nothing is added and no variance either."""
    sets = masks_of(np.random.default_rng(1), 20)
    repeated = np.repeat(sets, 5, axis=0)
    deviations = Deviations.of(repeated, repeated[:, 0] * 0.3, lambda masks: masks[:, 0] * 0.3)
    for values in deviations.expected(sets):
        assert not values.any()


def test_without_measured_sets_there_are_no_deviations():
    """Before any set is measured the regression alone decides."""
    for values in Deviations.none().expected(np.eye(COUNT, dtype=bool)):
        assert not values.any()
