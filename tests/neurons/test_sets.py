"""Overlaps of sets and random sets."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.neurons.sets import RandomSets, shared

LAYERS = np.repeat([0, 1, 2, 3], 50)


def test_overlap_is_what_the_definitions_say():
    """Two common neurons are 2/4 of the first set, 2/3 of the second and 2/5 of the union."""
    common = shared(np.array([1, 2, 3, 4]), np.array([3, 4, 9]), neurons=200)
    assert (common.common, common.of_first, common.of_second) == (2, 0.5, pytest.approx(2 / 3))
    assert (common.of_larger, common.iou) == (0.5, pytest.approx(2 / 5))


def test_expectation_is_that_of_random_sets():
    """Expected overlaps agree with simulated random sets, IoU to first order."""
    rng = np.random.default_rng(0)
    draws = [
        shared(rng.choice(200, 30, replace=False), rng.choice(200, 50, replace=False), neurons=200)
        for _ in range(2000)
    ]
    assert np.mean([draw.of_larger for draw in draws]) == pytest.approx(
        draws[0].expected_of_larger, rel=0.03
    )
    assert np.mean([draw.iou for draw in draws]) == pytest.approx(draws[0].expected_iou, rel=0.05)


def test_empty_sets_share_nothing_that_is_known():
    """The overlap of an empty set is None, not zero and not an error."""
    common = shared(np.array([], dtype=int), np.array([1]), neurons=10)
    assert common.of_first is None
    assert common.of_second == 0
    assert shared(np.array([]), np.array([]), neurons=10).iou is None


@pytest.mark.parametrize("matching", ["size", "layer"])
def test_random_sets_match_and_avoid_the_located(matching):
    """Random sets have the same size, are disjoint from the located, differ and are repeatable."""
    like = np.array([0, 1, 2, 60, 199])
    sets = RandomSets(5, matching).like(like, LAYERS, seed=0)
    for columns in sets:
        assert len(columns) == len(set(columns.tolist())) == 5
        assert not set(columns.tolist()) & set(like.tolist())
        if matching == "layer":
            assert np.bincount(LAYERS[columns], minlength=4).tolist() == [3, 1, 0, 1]
    assert len({columns.tobytes() for columns in sets}) == 5
    again = RandomSets(3, matching).like(like, LAYERS, seed=0)
    assert all(np.array_equal(first, second) for first, second in zip(again, sets, strict=False))


def test_too_few_others_are_refused():
    """The message says to raise `sigma`."""
    with pytest.raises(BadInput, match="raise `sigma`"):
        RandomSets(1).like(np.arange(150), LAYERS, seed=0)
