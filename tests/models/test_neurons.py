"""Neurons are gated at the down projection's input, and their parameters are found."""

import pytest
import torch
from models.architectures import BY_NAME, VOCABULARY, make_model
from tiny import tiny_tokenizer

from broca.errors import UnsupportedModel
from broca.models import GatedModel, neuron_blocks, neuron_slices

TOKENS = torch.randint(3, VOCABULARY, (1, 7), generator=torch.Generator().manual_seed(4))


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
        neuron_slices(model, neuron_blocks(gated.structure))


@pytest.mark.parametrize("name", ["Llama", "GPT-2", "Phi-3", "GLM", "OPT", "GPT-J", "MPT"])
def test_slices_are_the_parameters_of_their_neuron(name):
    """Changing the slices of one neuron changes its activation and no other neuron's."""
    model, gated = wrap(name)
    block = neuron_blocks(gated.structure)[0]
    out, *into = neuron_slices(model, [block])[block.layer]
    activations = []
    block.part.module.register_forward_pre_hook(lambda _, args: activations.append(args[0].clone()))

    @torch.no_grad()
    def run():
        model(input_ids=TOKENS, use_cache=False)
        return activations.pop().reshape(-1, block.width)

    assert out.path == f"{block.part.path}.weight"
    for neuron in (0, 17, block.width - 1):
        before = run()
        for part in into:
            part.parameter.data.index_fill_(part.dim, part.index[neuron], 0.37)
        assert (run() != before).any(0).nonzero()[:, 0].tolist() == [neuron]
    covered = sum(part.index.numel() for part in into if part.path.endswith("weight"))
    assert covered == block.width * (2 if name in ("Llama", "Phi-3", "GLM") else 1)
    biased = any(part.path.endswith("bias") for part in into)
    assert biased == (name in ("GPT-2", "OPT", "GPT-J"))
