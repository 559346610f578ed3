"""Neurons located by random ablation: planted neurons are found and budgets are kept."""

import numpy as np
import pytest
from neurons.conftest import letters

from broca.engine import Engine
from broca.errors import BadInput
from broca.neurons.sensing import SensingOptions, equal_rows, first_groups, sense
from broca.options import MethodOptions, RuleOptions

PLANTED = [5, 70, 100]


class Planted:
    """Stands in for a run in which ablating a planted neuron costs 1 and any other nothing."""

    def __init__(self, run):
        self.run, self.neurons, self.rule = run.run, run.neurons, run.rule
        self.seed = run.seed
        self.rows = 0

    def log_probability(self, places, sets, index, **_):
        """Returns additive effects with small noise."""
        self.rows += len(places)
        rng = np.random.default_rng(self.rows)
        cost = np.array([len(np.intersect1d(columns, PLANTED)) for columns in sets])
        return -cost[np.asarray(index)] + rng.normal(0, 0.05, len(places))


@pytest.mark.parametrize("method", ["cs-stratified", "one-shot", "greedy"])
def test_coarse_to_fine_finds_planted_neurons(ask, method):
    """Every search finds the planted neurons within the budget, in levels of smaller groups."""
    options = SensingOptions(method=method, rows=3000, groups=32, keep=4, items=4, sparsity=0.1)
    run = ask(letters(8), rule=RuleOptions(count=3))
    planted = Planted(run)
    sensed = sense(planted, run.places("letters"), options)
    assert sensed.columns.tolist() == PLANTED
    assert sensed.rows == planted.rows <= 3000
    assert [level.size for level in sensed.levels] == [4, 1]
    assert sensed.rows == sum(level.rows for level in sensed.levels)


def test_masked_gradients_are_the_mean_over_random_masks(neurons, ask):
    """Masked gradients equal finite differences of the gates, averaged over the same masks."""
    run = ask(letters(3), rule=RuleOptions(count=4))
    options = SensingOptions(rows=18, rate=0.3)
    sensed = sense(run, run.places("letters"), options)
    assert (sensed.rows, len(sensed.columns)) == (18, 4)
    assert run.run.search_rows == 18
    checked = [0, int(np.argmax(np.abs(sensed.scores))), 127]
    step, slopes, engine = 0.02, np.zeros(len(checked)), Engine(neurons.model)
    golds = run.golds(run.places("letters"))
    for number in range(6):
        ablated = np.random.default_rng([0, 23, number]).random(len(neurons)) < 0.3
        gold = golds[number % 3]
        for place, neuron in enumerate(checked):
            values = []
            for sign in (1, -1):
                gates = np.where(neurons.masks([np.flatnonzero(ablated)]), 0, 1).astype(np.float32)
                gates[0, neurons.gates[neuron]] += sign * step
                (answer,) = engine.run([gold], gates, np.zeros(1, dtype=int))
                values.append(answer.value / len(gold.continuation))
            slopes[place] += (values[0] - values[1]) / (2 * step) / 6
    np.testing.assert_allclose(sensed.scores[checked], slopes, atol=2e-3, rtol=2e-2)


def test_groups_cover_every_neuron_once_within_layers(neurons):
    """The groups partition the neurons, and no group spans two layers."""
    groups = first_groups(neurons, 10, np.random.default_rng(0))
    assert sorted(np.concatenate(groups).tolist()) == list(range(128))
    assert all(len(set(neurons.layers[group].tolist())) == 1 for group in groups)


def test_equal_cost_grows_with_steps(ask):
    """The rows of equal cost agree with a count by hand and nearly double with the steps."""
    run = ask(letters(1), rule=RuleOptions(steps=19))
    places = run.places("letters")
    (gold,) = run.golds(places)
    reads, answers = len(gold.context) + len(gold.continuation), len(gold.continuation)
    by_hand = (reads + 3 * answers * 20 * (1 + 0.5)) / reads
    assert equal_rows(run, places) == round(by_hand)
    doubled = ask(letters(1), rule=RuleOptions(steps=38))
    assert 1.8 < equal_rows(doubled, places) / equal_rows(run, places) < 2


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"method": "cs-stratifed"}, "did you mean"), ({"rate": 0.0}, "rate"), ({"split": 1}, "split"),
     ({"rows": 0}, "rows")],
)  # fmt: skip
def test_wrong_options_are_refused(wrong, name):
    """The message names the wrong option."""
    with pytest.raises(BadInput, match=name):
        SensingOptions(**wrong)


def test_options_of_a_verb_say_search_and_rows():
    """The options of a verb set search and rows; all others keep their tuned values."""
    options = SensingOptions.of(MethodOptions(search="greedy", rows=12))
    assert options == SensingOptions("greedy", 12)
