"""Scaled neurons equal weights edited by hand; scores are kept and taken from the journal."""

import copy

import numpy as np
import pytest
import torch
from independent import plain_loglikelihood
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.gradients import Attributor
from broca.neurons.neuron_run import INTACT

COLUMNS = np.array([1, 2, 3, 20, 64, 65, 100])


@pytest.mark.parametrize("factor", [0.0, 2.0])
def test_scaled_neurons_equal_scaled_columns(neurons, ask, factor):
    """p(answer) and the score are those of a copy whose down projections' columns are scaled."""
    edited, run = copy.deepcopy(neurons.model.model), ask(letters(6))
    with torch.no_grad():
        for layer, local in ((0, [1, 2, 3, 20]), (1, [0, 1, 36])):
            edited.model.layers[layer].mlp.down_proj.weight[:, local] *= factor
    places = run.places("letters")
    intact, scaled = (run.scaled(places, [columns], factor) for columns in (INTACT, COLUMNS))
    for row, gold in enumerate(run.golds(places)):
        expected, greedy = plain_loglikelihood(edited, gold.context, gold.continuation)
        assert scaled.log_probability[0, row] == pytest.approx(expected, abs=1e-3)
        assert scaled.scores[0, row] == greedy
    assert np.abs(intact.log_probability - scaled.log_probability).max() > 0.01


def test_every_row_has_its_own_set(ask):
    """A batch of mixed sets equals the sets one by one."""
    run = ask(letters(6))
    places, sets = run.places("letters"), [INTACT, COLUMNS, COLUMNS[:2]]
    apart = run.scaled(places, sets).log_probability
    index = [0, 1, 2, 2, 1, 0]
    mixed = ask(letters(6)).log_probability(places, sets, index)
    expected = [apart[which, row] for row, which in enumerate(index)]
    np.testing.assert_allclose(mixed, expected, atol=1e-5)


def test_a_factor_that_changes_nothing_is_refused(ask):
    """Neurons that are multiplied with 1 are intact."""
    run = ask(letters(2))
    for factor in (1.0, float("nan")):
        with pytest.raises(BadInput, match="other than 1"):
            run.scaled(run.places("letters"), [COLUMNS], factor)


def test_scores_are_never_computed_twice(ask, tmp_path, monkeypatch):
    """Another run on the journal takes them from there, equal to the bit; other steps are new."""
    computed = []
    original = Attributor.run

    def counted(self, requests, store):
        computed.append(len(requests))
        original(self, requests, store)

    monkeypatch.setattr(Attributor, "run", counted)
    journal = tmp_path / "j.sqlite"
    first = ask(letters(6), journal=journal)
    half = first.item_scores(first.places("letters")[:3], steps=3)
    first.run.workspace.close()
    second = ask(letters(6), journal=journal)
    places = second.places("letters")
    whole = second.item_scores(places, steps=3)
    assert computed == [3, 3]
    assert np.array_equal(whole.scores[:3], half.scores)
    again = second.item_scores(places, steps=3)
    assert np.array_equal(again.scores, whole.scores)
    second.item_scores(places, steps=4)
    second.item_scores(places, steps=None)
    assert sum(computed) == 6 + 6 + 6


def test_tokens_of_scores_are_counted(ask):
    """What scoring reads counts as what rows read does."""
    run = ask(letters(2))
    run.item_scores(run.places("letters"), steps=3)
    rows, tokens = run.run.finish()
    assert rows == 2
    assert tokens > 2 * 4
