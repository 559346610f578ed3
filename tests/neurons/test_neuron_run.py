"""Scaled neurons equal weights edited by hand; scores are stored in the journal and reused."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from independent import plain_loglikelihood
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.gradients import Attributor
from broca.neurons.methods import EMPTY
from broca.neurons.neuron_run import NeuronModel
from broca.options import RuleOptions
from broca.verification import Trial

COLUMNS = np.array([1, 2, 3, 20, 64, 65, 100])


@pytest.mark.parametrize("factor", [0.0, 2.0])
def test_scaled_neurons_equal_scaled_columns(neurons, ask, factor):
    """Likelihood and score equal those of a copy with scaled columns of the down projections."""
    edited, run = copy.deepcopy(neurons.model.model), ask(letters(6))
    with torch.no_grad():
        for layer, local in ((0, [1, 2, 3, 20]), (1, [0, 1, 36])):
            edited.model.layers[layer].mlp.down_proj.weight[:, local] *= factor
    places = run.places("letters")
    intact, scaled = (run.scaled(places, [columns], factor) for columns in (EMPTY, COLUMNS))
    for row, gold in enumerate(run.golds(places)):
        expected, greedy = plain_loglikelihood(edited, gold.context, gold.continuation)
        assert scaled.log_probability[0, row] == pytest.approx(expected, abs=1e-3)
        assert scaled.scores[0, row] == greedy
    assert np.abs(intact.log_probability - scaled.log_probability).max() > 0.01


def test_scores_are_never_computed_twice(ask, tmp_path, monkeypatch):
    """A second run reads scores from the journal bit for bit; other steps are computed anew."""
    computed, original = [], Attributor.run

    def counted(self, requests):
        computed.append(len(requests))
        return original(self, requests)

    monkeypatch.setattr(Attributor, "run", counted)
    first = ask(letters(6), journal=tmp_path / "j.sqlite")
    half = first.item_scores(first.places("letters")[:3])
    first.run.workspace.close()
    second = ask(letters(6), journal=tmp_path / "j.sqlite")
    places = second.places("letters")
    full, again = second.item_scores(places), second.item_scores(places)
    assert computed == [3, 3]
    assert np.array_equal(full.scores[:3], half.scores)
    assert np.array_equal(again.scores, full.scores)
    replace(second, rule=RuleOptions(steps=4)).item_scores(places)
    second.item_scores(places, integrated=False)
    assert sum(computed) == 6 + 6 + 6


@pytest.mark.parametrize("aggregate", [None, lambda values, drawn: float(values.mean())])
def test_means_are_those_of_the_values_that_are_known(ask, monkeypatch, aggregate):
    """Scores are means, with intervals of shares, and losses means of the items' differences."""
    run = ask(letters(4))
    monkeypatch.setattr(Trial, "aggregation", lambda *_: aggregate)
    before, after = np.array([1.0, 1, 1, 0]), np.array([1.0, 0, 0, 0])
    assert run.score("letters", before).value == 0.75
    assert run.lost("letters", before, after).value == 0.5
    for equal in (np.zeros(4), np.ones(4)):
        score = run.score("letters", equal)
        assert 0 <= score.low < score.high <= 1


def test_masks_ablate_the_components_of_the_same_names(neurons, tiny):
    """Masks account for the heads before the neurons; a model of heads alone is refused."""
    columns = np.array([0, 70])
    masks = neurons.masks([columns, EMPTY])
    names = np.array(neurons.model.components.names)
    assert names[masks[0]].tolist() == ["L0N0", "L1N6"] == neurons.names(columns)
    assert not masks[1].any()
    assert neurons.parameters_of(columns) == 2 * 3 * 32  # of `down`, `gate` and `up`
    with pytest.raises(BadInput, match="`components` 'neurons'"):
        NeuronModel(tiny)
