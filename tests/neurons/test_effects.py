"""Scaled neurons in the engine equal weights edited by hand."""

import copy

import numpy as np
import pytest
import torch
from independent import plain_loglikelihood

from broca.errors import BadInput
from broca.models import GatedModel
from broca.neurons import INTACT, Measurer, NeuronModel, Scaled
from broca.testing import tiny_llama, tiny_tokenizer

COLUMNS = np.array([1, 2, 3, 20, 64, 65, 100])


@pytest.mark.parametrize("factor", [0.0, 2.0])
def test_scaled_neurons_equal_scaled_columns(neurons, ask, factor):
    """p(answer) is that of a copy whose down projections' columns are scaled."""
    edited, questions = copy.deepcopy(neurons.model.model), ask(6)
    with torch.no_grad():
        for layer, local in ((0, [1, 2, 3, 20]), (1, [0, 1, 36])):
            edited.model.layers[layer].mlp.down_proj.weight[:, local] *= factor
    intact, scaled = Measurer(neurons).under(questions, [INTACT, Scaled(COLUMNS, factor)])
    for row, question in enumerate(questions.questions):
        gold = question.gold
        expected, greedy = plain_loglikelihood(edited, gold.context, gold.continuation)
        assert scaled.log_probability[row] == pytest.approx(expected, abs=1e-3)
        assert scaled.scores[row] == greedy
    assert np.abs(intact.log_probability - scaled.log_probability).max() > 0.01
    assert np.allclose(intact.probability, np.exp(intact.log_probability))


def test_every_row_has_its_own_set(neurons, ask):
    """A batch of mixed sets equals the sets one by one."""
    questions, measurer = ask(6), Measurer(neurons)
    sets = [INTACT, Scaled(COLUMNS), Scaled(COLUMNS[:2], 2.0)]
    apart = measurer.under(questions, sets, scored=False)
    index = [0, 1, 2, 2, 1, 0]
    mixed = measurer.rows_under(questions.questions, sets, index, scored=False)
    expected = [apart[which].log_probability[row] for row, which in enumerate(index)]
    np.testing.assert_allclose(mixed.log_probability, expected, atol=1e-5)
    assert np.isnan(mixed.scores).all()
    assert measurer.rows == 6 * 3 + 6


def test_a_model_without_neuron_gates_is_refused():
    """Loaded for heads alone, it could not ablate neurons."""
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny")
    with pytest.raises(BadInput, match="components='neurons'"):
        Measurer(NeuronModel(model))
