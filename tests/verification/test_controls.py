"""Random sets: how they match the tested set, and how the tested set ranks among them."""

import numpy as np
import pytest
from scipy.stats import binomtest
from simulated import COMPONENTS

from broca.components import Component, ComponentSet
from broca.verification.statistics import behind, layer_matched, norm_matched, standing


def test_layer_matched_sets_have_as_many_heads_in_each_layer():
    """The default is 39 different sets, which share no head with the tested set."""
    real = COMPONENTS.columns("L0H1+L0H2+L3H4")
    sets = layer_matched(COMPONENTS, real)
    assert sets.shape == (39, 3)
    assert len({tuple(columns) for columns in sets.tolist()}) == 39
    for columns in sets:
        assert sorted(COMPONENTS[int(column)].layer for column in columns) == [0, 0, 3]
        assert len({*columns.tolist()} - {*real}) == 3


def test_a_layer_with_too_few_others_borrows_from_the_nearest():
    """Where 15 other heads are too few for 78 sets, sets take heads of the nearest layers only."""
    sets = layer_matched(COMPONENTS, COMPONENTS.columns("L2H0"))
    assert len(sets) == len(norm_matched(np.arange(96.0), [5])) == 39
    assert {COMPONENTS[int(column)].layer for column in sets.ravel()} <= {0, 1, 2, 3, 4}


def test_nothing_to_draw_from_gives_no_sets():
    """A set of all components has no random sets."""
    tiny = ComponentSet(tuple(Component(0, "head", head) for head in range(3)))
    assert layer_matched(tiny, [0, 1, 2]).shape == (0, 3)
    assert norm_matched(np.ones(3), [0, 1, 2]).shape == (0, 3)


def test_norm_matched_heads_are_near_in_norm():
    """Each replacement is among the ten heads that are nearest in norm to its member."""
    norms = np.random.default_rng(0).permutation(96).astype(float)
    real = [int(np.flatnonzero(norms == value)[0]) for value in (10, 50, 80)]
    for drawn in norm_matched(norms, real):
        assert len({*drawn.tolist()} - {*real}) == 3
        np.testing.assert_allclose(np.sort(norms[drawn]), [10, 50, 80], atol=7)


def test_standing_counts_ties_against_the_real_set():
    """Rank and p equal those by hand; the effect is in standard deviations of the random sets.

    The share that it is ahead of has the exact interval of one success in three.
    """
    place = standing(0.9, np.array([0.1, 0.2, 0.9]), [False, False, True])
    assert (place.rank, place.p) == (2, 0.5)
    away = (0.9 - 0.4) / np.std([0.1, 0.2, 0.9], ddof=1)
    high = away + 1.96 * np.sqrt(1 / 3 + away**2 / 6)
    assert (place.effect.value, place.effect.high) == pytest.approx((away, high))
    assert (place.ahead.low, place.ahead.high) == pytest.approx((0.094, 0.992), abs=0.001)
    assert standing(1.0, np.linspace(0, 0.5, 20), [False] * 20).p == pytest.approx(1 / 21)
    assert standing(1.0, np.zeros(20), [False] * 20).effect is None


@pytest.mark.parametrize("looks", [1, 10])
def test_sets_are_behind_by_the_exact_binomial_test(looks):
    """Several looks divide the level of the test, and not the share of which it is a test."""
    for sets in (5, 20, 39):
        for reached in range(sets + 1):
            p = binomtest(reached, sets, 0.05, alternative="greater").pvalue
            assert behind(reached, sets, 0.05, looks=looks) == (p < 0.05 / looks)


def test_norm_matched_members_stand_for_their_own_kind():
    """A head is replaced by a head and a neuron by a neuron, whatever their norms."""
    kinds = ["head"] * 30 + ["neuron"] * 60
    sets = norm_matched(np.random.default_rng(0).normal(size=90), [3, 40, 50], kinds=kinds)
    assert len(sets) == 39
    assert all(sum(column < 30 for column in columns) == 1 for columns in sets.tolist())
