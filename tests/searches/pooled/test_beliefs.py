"""Beliefs about sets, compared with enumeration of all sets and with simulated problems."""

from itertools import combinations

import numpy as np
import pytest

from broca.searches import Problem
from broca.searches.pooled.beliefs import Beliefs, Deviations, Features
from broca.searches.pooled.measurer import Losses, LossMeasurer

COUNT = 10


def masks_of(rng, rows, size=3, components=COUNT):
    """Returns random masks of one size."""
    masks = np.zeros((rows, components), dtype=bool)
    for mask in masks:
        mask[rng.choice(components, size, replace=False)] = True
    return masks


def believing(task, others=None, *, rows=600, noise=0.05, seed=0, k=3, cost=0.01):
    """Returns beliefs after rows of masks of one to three components; `task(mask)` is the loss."""
    rng = np.random.default_rng(seed)
    masks = np.vstack([masks_of(rng, rows // 3, size) for size in (1, 2, 3)])

    def losses(of):
        return np.array([of(mask) for mask in masks]) + rng.normal(0, noise, len(masks))

    columns = np.arange(COUNT)
    rows = {("task", "items"): Losses(masks, losses(task), np.arange(len(masks)))}
    if others is not None:
        rows["others", "items"] = Losses(masks, losses(others), len(masks) + np.arange(len(masks)))
    measurer = LossMeasurer(Problem(COUNT, np.arange(1), k, None, seed), 0, 1.0, "probability")
    measurer.losses, measurer.rng = rows, np.random.default_rng(seed)
    beliefs = Beliefs(measurer, cost)
    beliefs.describe(Features(columns, columns))
    return beliefs


def worth(mask):
    """The loss has main effects, a pair that matters only together, and two substitutes."""
    return 0.2 * mask[0] + 0.15 * mask[5] - 0.1 * mask[0] * mask[5] + 0.3 * mask[3] * mask[7]


@pytest.mark.parametrize("seed", range(3))
def test_best_set_is_the_best_of_all(seed):
    """The best candidate has the highest value of all 175 sets of at most three components."""
    beliefs = believing(worth, lambda mask: 0.2 * mask[5], seed=seed)
    every = [members for size in range(1, 4) for members in combinations(range(COUNT), size)]
    sets = np.zeros((len(every), COUNT), dtype=bool)
    for mask, members in zip(sets, every, strict=True):
        mask[list(members)] = True
    net = beliefs.values(sets) - 0.01 * sets.sum(axis=1)
    best = beliefs.candidates(1)[0]
    assert np.array_equal(best, sets[np.argmax(net)])
    assert set(np.flatnonzero(best)) == {0, 3, 7}


@pytest.mark.long
def test_bound_holds_for_the_best_set():
    """The bound holds in at least 90 % of problems drawn from the prior and is not far above."""
    held, excess = [], []
    for seed in range(20):
        rng = np.random.default_rng([seed, 1])
        effects = rng.normal(0, 0.04, COUNT)
        best = np.sort(effects)[-3:].clip(0).sum()
        beliefs = believing(
            lambda mask, effects=effects: float(effects @ mask), noise=0.3, seed=seed, cost=0.0
        )
        bound = beliefs.bound()
        held.append(bound >= best)
        excess.append(bound - best)
    assert np.mean(held) >= 0.9
    assert np.mean(excess) < 0.25


def test_harms_are_those_of_the_screen_alone():
    """Rows of small sets that lose nothing leave the harms unchanged; the others' half is apart."""
    screened = believing(lambda mask: 0.2 * mask[2], lambda mask: 0.2 * mask[5])
    harms = screened.harms()
    count = len(harms) // 2
    assert harms[:count, 2].mean() == pytest.approx(0.2, abs=0.03)
    assert harms[count:, 5].mean() == pytest.approx(-0.2, abs=0.03)
    alone = np.repeat(np.eye(COUNT, dtype=bool)[2:3], 600, axis=0)
    screened.losses["task", "confirm"] = Losses(alone, np.zeros(600), np.arange(600))
    screened.fit()
    assert screened.harms()[:count, 2].mean() == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.3])
def test_spread_of_the_deviations_is_estimated(spread):
    """The estimated spread and noise are close to those that the rows are drawn with."""
    rng = np.random.default_rng(0)
    sets = np.unique(masks_of(rng, 200), axis=0)
    true = rng.normal(0, spread, len(sets))
    place = np.repeat(np.arange(len(sets)), 20)
    losses = true[place] + rng.normal(0, 0.2, len(place))
    deviations = Deviations.of(sets[place], losses, lambda sets: np.zeros(len(sets)))
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
