"""Overlaps and random sets."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.neurons.sets import random_set, random_sets, require_draws, shared

LAYERS = np.repeat([0, 1, 2, 3], 50)


def test_overlap_is_what_the_definitions_say():
    """Two of four and two of three."""
    common = shared(np.array([1, 2, 3, 4]), np.array([3, 4, 9]), neurons=200)
    assert (common.common, common.of_first, common.of_second) == (2, 0.5, pytest.approx(2 / 3))
    assert (common.of_larger, common.iou) == (0.5, pytest.approx(2 / 5))


def test_expectation_is_that_of_random_sets():
    """Against simulation; IoU to first order."""
    rng = np.random.default_rng(0)
    draws = [
        shared(rng.choice(200, 30, replace=False), rng.choice(200, 50, replace=False), neurons=200)
        for _ in range(2000)
    ]
    assert np.mean([one.of_larger for one in draws]) == pytest.approx(
        draws[0].expected_of_larger, rel=0.03
    )
    assert np.mean([one.iou for one in draws]) == pytest.approx(draws[0].expected_iou, rel=0.05)


def test_empty_sets_share_nothing_that_is_known():
    """NaN, not zero and no error."""
    common = shared(np.array([], dtype=int), np.array([1]), neurons=10)
    assert np.isnan(common.of_first)
    assert common.of_second == 0
    assert np.isnan(shared(np.array([]), np.array([]), neurons=10).iou)


@pytest.mark.parametrize("matching", ["size", "layer"])
def test_random_sets_match_and_avoid_the_located(matching):
    """Same size, disjoint, repeatable, different from draw to draw; by layer where asked."""
    like = np.array([0, 1, 2, 60, 199])
    sets = [random_set(like, LAYERS, seed=0, draw=n, matching=matching) for n in range(5)]
    for one in sets:
        assert len(one) == len(set(one.tolist())) == 5
        assert not set(one.tolist()) & set(like.tolist())
        if matching == "layer":
            assert np.bincount(LAYERS[one], minlength=4).tolist() == [3, 1, 0, 1]
    assert len({one.tobytes() for one in sets}) == 5
    again = random_set(like, LAYERS, seed=0, draw=2, matching=matching)
    assert np.array_equal(again, sets[2])


def test_too_few_others_are_refused():
    """Named with what to do."""
    with pytest.raises(BadInput, match="raise `sigma`"):
        random_set(np.arange(150), LAYERS, seed=0, draw=0)


def test_several_random_sets_are_the_draws_in_order():
    """As many as are wanted, each a draw of its own."""
    like = np.array([3, 60])
    sets = random_sets(like, LAYERS, seed=1, draws=3, matching="size")
    for number, columns in enumerate(sets):
        assert np.array_equal(columns, random_set(like, LAYERS, seed=1, draw=number))


def test_wrong_draws_are_refused():
    """No draws, and an unknown way to match."""
    assert require_draws(1, "layer") == "layer"
    with pytest.raises(BadInput, match="`draws`"):
        require_draws(0, "size")
    with pytest.raises(BadInput, match="`matching`"):
        require_draws(1, "heads")
