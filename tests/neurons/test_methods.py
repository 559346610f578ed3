"""Every method selects neurons by its definition."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.methods import NEURON_METHODS, choose_neurons
from broca.neurons.neuron_run import NeuronRun
from broca.options import RuleOptions

RULE = RuleOptions(count=6, steps=3)


@pytest.mark.parametrize("method", NEURON_METHODS)
def test_every_method_gives_the_wanted_number(ask, method):
    """Every method selects `count` neurons, so methods can be compared at equal count."""
    run = ask(letters(6), letters(4, name="others", start=12), rule=RULE)
    choice = choose_neurons(run, "letters", method=method, contrast=["others"])
    assert len(choice.columns) == 6
    assert choice.columns.tolist() == sorted(set(choice.columns.tolist()))


def test_knowledge_neurons_follow_their_two_thresholds(ask):
    """A neuron is selected if it exceeds 0.2 of the item's maximum in more than 40 % of items."""
    run = ask(letters(6))
    scores = run.item_scores(run.places("letters")).scores
    votes = (scores > 0.2 * scores.max(1, keepdims=True)).mean(0)
    choice = choose_neurons(run, "letters", method="knowledge-neurons")
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
    choice = choose_neurons(run, "letters", method="activation", contrast=["others"])
    assert choice.columns.tolist() == [9]


@pytest.mark.parametrize(
    ("method", "message"),
    [("cnll", "did you mean 'cnl'"), ("activation", "`others`"), ("random", "`count`")],
)
def test_methods_say_what_they_lack(ask, method, message):
    """The message names the missing or unknown option."""
    with pytest.raises(BadInput, match=message):
        choose_neurons(ask(letters(2)), "letters", method=method)


def test_names_of_methods_are_read_without_torch():
    """`broca neurons locate --help` does not wait for torch."""
    code = "import sys, broca.neurons.methods; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
