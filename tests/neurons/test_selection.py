"""Selection of the neurons with outstanding scores."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.neurons.selection import commonality_set, item_set, standardized
from broca.options import RuleOptions

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
