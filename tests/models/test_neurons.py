"""Neurons are gated at the down projection's input, and their parameters are found."""

import pytest
import torch
from models.architectures import BY_NAME, make_model
from tiny import tiny_tokenizer
from torch.nn.utils import parametrizations

from broca.errors import UnsupportedModel
from broca.models import GatedModel, neuron_blocks, parameters_of_neuron
from broca.models.structure import find_structure, is_projection


def wrap(name):
    """Returns a tiny model, and the same with gates on its neurons."""
    model = make_model(BY_NAME[name])
    return model, GatedModel.wrap(model, tiny_tokenizer(), name=name, components="neurons")


def test_neurons_without_parameters_of_their_own_are_refused():
    """Neurons of experts are refused by the model's name, and those that BitNet's norm mixes."""
    with pytest.raises(UnsupportedModel, match=r"model\.layers\.0\.mlp\.experts, Mixtral"):
        wrap("Mixtral")
    model, gated = wrap("BitNet")
    with pytest.raises(UnsupportedModel, match="cannot be told apart"):
        parameters_of_neuron(model, neuron_blocks(gated.structure)[0])


@pytest.mark.parametrize(
    ("name", "matrices", "biases"),
    [("Llama", 3, 0), ("Phi-3", 3, 0), ("GLM", 3, 0), ("GPT-2", 2, 1), ("MPT", 2, 0)],
)
def test_parameters_of_a_neuron_are_counted(name, matrices, biases):
    """A neuron has a vector of the model's width in each matrix, and a bias where it is written.

    It is found at the same place if all weights of the model are computed from others.
    """
    model, gated = wrap(name)
    (block, *_) = neuron_blocks(gated.structure)
    count = matrices * model.get_input_embeddings().embedding_dim + biases
    assert parameters_of_neuron(model, block) == count
    for module in [module for module in model.modules() if is_projection(module)]:
        parametrizations.weight_norm(module)
    structure = find_structure(model)
    assert structure.projections == gated.structure.projections
    assert neuron_blocks(structure)[0].part == block.part
    assert parameters_of_neuron(model, block) == count


def test_parameters_are_counted_where_neurons_are_at_rest():
    """Neurons that ReLU sets to zero, of which trained models have many, change no count."""
    model, gated = wrap("OPT")
    with torch.no_grad():
        model.model.decoder.layers[0].fc1.bias[[0, 1, -1]] = -100.0
    (block, *_) = neuron_blocks(gated.structure)
    assert parameters_of_neuron(model, block) == 2 * model.config.hidden_size + 1
