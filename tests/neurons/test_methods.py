"""Rules, random sets and methods select neurons by their definitions."""

from dataclasses import replace

import numpy as np
import pytest
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.methods import NEURON_METHODS, choose_neurons, outstanding, random_sets
from broca.neurons.neuron_run import NeuronRun
from broca.options import DrawOptions, RuleOptions


def scores(**high):
    """Noise of standard deviation about 1, with some neurons raised."""
    values = np.random.default_rng(0).normal(size=100)
    for neuron, value in high.items():
        values[int(neuron[1:])] = value
    return values


def test_the_rule_selects_what_stands_out():
    """Scores above mean + sigma deviations, or the `count` highest; none of constant scores."""
    values = scores(n3=30.0, n70=12.0)
    bound = values.mean() + 2.5 * values.std()
    selected = outstanding(values, RuleOptions(sigma=2.5))
    assert selected.tolist() == np.flatnonzero(values > bound).tolist()
    assert outstanding(values, RuleOptions(count=2)).tolist() == [3, 70]
    assert not len(outstanding(np.ones(100), RuleOptions()))


@pytest.mark.parametrize("matching", ["size", "layer"])
def test_random_sets_match_and_avoid_the_located(matching):
    """Random sets have the same size, are disjoint from the located, differ and are repeatable."""
    like, layers = np.array([0, 1, 2, 60, 199]), np.repeat([0, 1, 2, 3], 50)
    options = DrawOptions(draws=5, matching=matching)
    sets, again = (random_sets(like, layers, options, seed=0) for _ in range(2))
    assert np.array_equal(sets, again)
    for columns in sets:
        assert len(set(columns.tolist()) - set(like.tolist())) == len(columns) == 5
        if matching == "layer":
            assert np.bincount(layers[columns], minlength=4).tolist() == [3, 1, 0, 1]
    assert len({columns.tobytes() for columns in sets}) == 5
    with pytest.raises(BadInput, match="raise `sigma`"):
        random_sets(np.arange(150), layers, DrawOptions(draws=1), seed=0)


@pytest.mark.parametrize("method", NEURON_METHODS)
def test_every_method_gives_the_wanted_number(ask, method):
    """Every method selects `count` neurons, of few or most, and refuses more than there are."""
    rule = RuleOptions(count=100, steps=3)
    run = ask(letters(6), letters(4, name="others", start=12), rule=rule)
    columns = choose_neurons(run, "letters", method).columns.tolist()
    assert columns == sorted(set(columns))
    assert len(columns) == 100
    with pytest.raises(BadInput, match="`count` 129 is more than"):
        choose_neurons(replace(run, rule=replace(rule, count=129)), "letters", method)


def test_knowledge_neurons_follow_their_two_thresholds(ask):
    """A neuron is selected if it exceeds 0.2 of the item's maximum in more than 40 % of items."""
    run = ask(letters(6))
    scores = run.item_scores(run.places("letters")).scores
    votes = (scores > 0.2 * scores.max(1, keepdims=True)).mean(0)
    choice = choose_neurons(run, "letters", "knowledge-neurons")
    assert choice.columns.tolist() == np.flatnonzero(votes > 0.4).tolist()


def test_activation_difference_finds_a_planted_difference(ask, monkeypatch):
    """A neuron that is active only on the task ranks first."""
    run = ask(letters(6), letters(5, name="others"), rule=RuleOptions(count=1))
    original, task_places = NeuronRun.item_scores, run.places("letters")

    def planted(self, places, *, integrated):
        scores = original(self, places, integrated=integrated)
        activations = np.random.default_rng(len(places)).normal(size=scores.activations.shape)
        activations[:, 9] += 40.0 * (places is task_places)
        return replace(scores, activations=activations.astype(np.float32))

    monkeypatch.setattr(NeuronRun, "item_scores", planted)
    assert choose_neurons(run, "letters", "activation").columns.tolist() == [9]
