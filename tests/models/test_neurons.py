"""Neurons are gated at the down projection's input, and their parameters are found."""

import pytest
import torch
from models.architectures import BY_NAME, VOCABULARY, make_model

from broca.errors import UnsupportedModel
from broca.models import GatedModel, neuron_blocks, neuron_slices
from broca.testing import tiny_tokenizer

TOKENS = torch.randint(3, VOCABULARY, (1, 7), generator=torch.Generator().manual_seed(4))


def wrap(architecture):
    """Returns a tiny model, and the same with gates on its neurons."""
    model = make_model(architecture)
    return model, GatedModel.wrap(
        model, tiny_tokenizer(), name=architecture.name, components="neurons"
    )


def test_mixtures_of_experts_are_refused_by_name():
    """Neurons of a mixture of experts are refused by its name."""
    with pytest.raises(UnsupportedModel, match=r"model\.layers\.0\.mlp\.experts, Mixtral"):
        wrap(BY_NAME["Mixtral"])


@pytest.mark.parametrize("name", ["Llama", "GPT-2", "Phi-3", "GLM", "OPT", "GPT-J", "MPT"])
def test_slices_are_the_parameters_of_their_neuron(name):
    """Changing the slices of one neuron changes its activation and no other neuron's."""
    model, gated = wrap(BY_NAME[name])
    block = neuron_blocks(gated.structure)[0]
    slices = neuron_slices(model, [block])[block.layer]
    activations = []
    block.part.module.register_forward_pre_hook(lambda _, args: activations.append(args[0].clone()))

    def run():
        with torch.no_grad():
            model(input_ids=TOKENS, use_cache=False)
        return activations.pop().reshape(-1, block.width)

    before = run()
    assert slices[0].path == f"{block.part.path}.weight"
    for neuron in (0, 17, block.width - 1):
        saved = [part.parameter.detach().clone() for part in slices]
        with torch.no_grad():
            for part in slices[1:]:
                part.parameter.index_fill_(part.dim, part.index[neuron], 0.37)
        changed = (run() != before).any(0).nonzero()[:, 0].tolist()
        assert changed == [neuron]
        with torch.no_grad():
            for part, value in zip(slices, saved, strict=True):
                part.parameter.copy_(value)
    covered = sum(part.index.numel() for part in slices[1:] if part.path.endswith("weight"))
    writers = {"Llama": 2, "Phi-3": 2, "GLM": 2}.get(name, 1)
    assert covered == writers * block.width
    biased = name in ("GPT-2", "OPT", "GPT-J")
    assert any(part.path.endswith("bias") for part in slices) == biased


def test_neurons_behind_a_norm_have_no_parameters_of_their_own():
    """BitNet's norm mixes neurons, so their parameters cannot be told apart and are refused."""
    model, gated = wrap(BY_NAME["BitNet"])
    with pytest.raises(UnsupportedModel, match="cannot be told apart"):
        neuron_slices(model, neuron_blocks(gated.structure))
