"""Neurons are gated at the down projection's input, and their parameters are found."""

import pytest
import torch
from models.architectures import ARCHITECTURES, VOCABULARY, make_model

from broca.errors import UnsupportedModel
from broca.models import GatedModel, neuron_blocks, neuron_slices, self_test
from broca.testing import tiny_tokenizer

BY_NAME = {architecture.name: architecture for architecture in ARCHITECTURES}
TOKENS = torch.randint(3, VOCABULARY, (1, 7), generator=torch.Generator().manual_seed(4))


def wrap(architecture, components="neurons"):
    """Returns a tiny model, and the same with gates."""
    model = make_model(architecture)
    return model, GatedModel.wrap(
        model, tiny_tokenizer(), name=architecture.name, components=components
    )


@pytest.mark.parametrize("name", ["Llama", "GPT-2", "OPT", "BitNet", "Bamba (hybrid)"])
def test_heads_and_neurons_are_gated_at_once(name):
    """With heads and neurons at once the self-test passes, and heads come first."""
    _, gated = wrap(BY_NAME[name], "heads+neurons")
    for check in self_test(gated):
        assert check.passed, f"{check.name}: {check.detail}"
    kinds = [component.kind for component in gated.components]
    assert kinds == sorted(kinds)
    assert set(kinds) == {"head", "neuron"}
    assert [point.units for point in gated.points if point.width == 1] == [
        block.width for block in neuron_blocks(gated.structure)
    ]


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
