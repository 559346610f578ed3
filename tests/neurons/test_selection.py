"""Selection of the neurons with outstanding scores."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.neurons.selection import (
    EMPTY,
    commonality_set,
    item_set,
    random_sets,
    shared,
    standardized,
)
from broca.options import DrawOptions, RuleOptions

LAYERS = np.repeat([0, 1], 50)


def scores(**high):
    """Noise of standard deviation about 1, with some neurons raised."""
    values = np.random.default_rng(0).normal(size=100)
    for neuron, value in high.items():
        values[int(neuron[1:])] = value
    return values


def test_rule_is_mean_plus_sigma_deviations():
    """Exactly the neurons above mean + sigma standard deviations are selected."""
    values = scores(n3=30.0, n70=12.0)
    bound = values.mean() + 2.5 * values.std()
    assert (
        item_set(values, LAYERS, RuleOptions(sigma=2.5)).tolist()
        == np.flatnonzero(values > bound).tolist()
    )


def test_scope_layer_judges_each_layer_by_itself():
    """A neuron that is ordinary among all neurons is selected in a quiet layer."""
    values = np.concatenate([scores()[:50] * 100, scores()[50:]])
    values[60] = 20.0
    assert 60 not in item_set(values, LAYERS, RuleOptions(sigma=4))
    assert 60 in item_set(values, LAYERS, RuleOptions(sigma=4, scope="layer"))
    for layer in (0, 1):
        standard = standardized(values, LAYERS, "layer")[layer == LAYERS]
        assert abs(standard.mean()) < 1e-9
        assert standard.std() == pytest.approx(1)


def test_vote_counts_items_and_mean_weighs_them():
    """A single loud item decides the mean and not the vote."""
    items = np.stack([scores(n5=20.0) for _ in range(9)] + [scores(n8=1e4)])
    assert commonality_set(items, LAYERS, RuleOptions(sigma=5)).tolist() == [8]
    assert commonality_set(items, LAYERS, RuleOptions(sigma=5, aggregate="vote")).tolist() == [5]
    assert commonality_set(
        items, LAYERS, RuleOptions(sigma=5, aggregate="vote", share=0.05)
    ).tolist() == [
        5,
        8,
    ]


def test_count_takes_the_highest():
    """The `count` highest scores are selected regardless of sigma, sorted by column."""
    values = scores(n40=9.0, n7=8.0)
    assert item_set(values, LAYERS, RuleOptions(count=2)).tolist() == [7, 40]
    assert commonality_set(
        values[None], LAYERS, RuleOptions(count=2, aggregate="vote")
    ).tolist() == [
        7,
        40,
    ]


def test_constant_scores_select_no_neuron():
    """Constant scores select no neuron and do not divide by zero."""
    assert not len(item_set(np.ones(100), LAYERS, RuleOptions()))


@pytest.mark.parametrize(
    "wrong", [{"scope": "heads"}, {"aggregate": "max"}, {"share": 0.0}, {"count": 0}, {"steps": 0}]
)
def test_wrong_values_are_refused(wrong):
    """The message names the wrong option."""
    with pytest.raises(BadInput, match=next(iter(wrong))):
        RuleOptions(**wrong)


def test_overlap_is_what_the_definitions_say():
    """Two common neurons are 2/4 of the first set, 2/3 of the second and 2/5 of the union."""
    common = shared(np.array([1, 2, 3, 4]), np.array([3, 4, 9]), neurons=200)
    assert (common.common, common.of_first, common.of_second) == (2, 0.5, pytest.approx(2 / 3))
    assert (common.of_larger, common.iou) == (0.5, pytest.approx(2 / 5))
    empty = shared(EMPTY, np.array([1]), neurons=10)
    assert (empty.of_first, empty.of_second) == (None, 0)
    assert shared(EMPTY, EMPTY, neurons=10).iou is None


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


@pytest.mark.parametrize("matching", ["size", "layer"])
def test_random_sets_match_and_avoid_the_located(matching):
    """Random sets have the same size, are disjoint from the located, differ and are repeatable."""
    like, layers = np.array([0, 1, 2, 60, 199]), np.repeat([0, 1, 2, 3], 50)
    sets = random_sets(like, layers, DrawOptions(draws=5, matching=matching), seed=0)
    for columns in sets:
        assert len(columns) == len(set(columns.tolist())) == 5
        assert not set(columns.tolist()) & set(like.tolist())
        if matching == "layer":
            assert np.bincount(layers[columns], minlength=4).tolist() == [3, 1, 0, 1]
    assert len({columns.tobytes() for columns in sets}) == 5
    again = random_sets(like, layers, DrawOptions(draws=3, matching=matching), seed=0)
    assert all(np.array_equal(first, second) for first, second in zip(again, sets, strict=False))
    with pytest.raises(BadInput, match="raise `sigma`"):
        random_sets(np.arange(150), layers, DrawOptions(draws=1), seed=0)
