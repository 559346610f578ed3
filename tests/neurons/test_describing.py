"""`neurons.json` and the other results are complete and decode to the written objects."""

import json

import numpy as np
import pytest
from neurons.conftest import letters

from broca.neurons.describing import experiment, neuron_set
from broca.neurons.methods import choose_neurons
from broca.options import RuleOptions
from broca.results.codec import decode, encode
from broca.results.neurons import Decoupled, NeuronSet


def test_located_neurons_come_back_as_they_were(neurons, ask):
    """Shares, layers and order are right, and the decoded file equals the result."""
    run = ask(letters(4), rule=RuleOptions(count=5, steps=3))
    choice = choose_neurons(run, "letters")
    result = neuron_set(run, "letters", choice)
    assert result.share_of_neurons == 5 / 128
    total = sum(parameter.numel() for parameter in neurons.model.model.parameters())
    assert result.share_of_parameters == pytest.approx(5 * 96 / total)
    assert (result.model.neurons, result.model.parameters) == (128, total)
    assert sum(result.by_layer.values()) == 5
    scores = [neuron.score for neuron in result.selected]
    assert scores == sorted(scores, reverse=True)
    names = [neuron.name for neuron in result.selected]
    assert neurons.columns(names).tolist() == choice.columns.tolist()
    assert decode(NeuronSet, encode(result)) == result


def test_nothing_that_stands_out_is_noted(ask):
    """An empty selection carries a note that says what to change."""
    run = ask(letters(2), rule=RuleOptions(sigma=1e6, steps=3))
    result = neuron_set(run, "letters", choose_neurons(run, "letters"))
    assert (result.selected, result.notes) == (
        (), ("no neuron stands out: lower `sigma` or give `count`",),
    )  # fmt: skip


def test_what_is_not_known_is_null(ask):
    """Unknown values, which are NaN, are written as null because JSON has no NaN."""
    run = ask(letters(2))
    run.run.settings["verb"] = "neurons decouple"
    shares = run.mean([]), run.mean([0.5])
    lines = (Decoupled("same", 1, *shares, shares[1], shares[1], np.float32(0.25), 0.5),)
    data = json.loads(encode(experiment(run, lines, notes=["so"], more=1)))
    assert (data["command"], data["settings"]) == ("broca neurons decouple", {"more": 1})
    assert data["notes"] == ["so"]
    (line,) = data["result"]
    assert (line["of_first"], line["random_of_larger"]) == (None, 0.25)
    assert line["of_second"]["value"] == 0.5
