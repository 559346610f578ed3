"""Gates become factors on projections, or are refused with the reason."""

import pytest
from exports.families import gated
from tiny import tiny_llama

from broca.errors import UnsupportedModel
from broca.exports.factors import factors_of
from broca.models import GatedModel


def test_a_head_is_a_slice_of_the_input(tiny):
    """A head scales its slice of the projection's input; overlapping components multiply."""
    (heads,) = factors_of(tiny, "L1H1+L1G0", 0.5)
    assert (heads.path, heads.side) == ("model.layers.1.self_attn.o_proj", "input")
    assert heads.values.tolist() == [0.5] * 8 + [0.25] * 8 + [1.0] * 16
    (layer,) = factors_of(tiny, "L0A")
    assert layer.values.tolist() == [0.0] * 32


def test_factors_are_rounded_as_gates_are():
    """A factor is rounded to the model's number format, like a gate."""
    model = GatedModel.wrap(tiny_llama().bfloat16(), None, name="tiny")
    (factors,) = factors_of(model, "L0H0", 0.3)
    assert factors.values[0] == 0.30078125


def test_a_block_of_experts_whose_sum_no_weights_scale_is_refused(monkeypatch):
    """A block of experts whose output the experts' weights do not scale is refused."""
    model = gated("Qwen3-MoE")
    block = model.gated_parts("L0M").points[0].module
    forward = block.forward
    monkeypatch.setattr(block, "forward", lambda hidden: forward(hidden) + hidden)
    with pytest.raises(UnsupportedModel, match=r"L0M cannot .* no weights of theirs scale"):
        factors_of(model, "L0M")


def test_shared_weights_are_refused():
    """A projection that shares its weights with another layer is refused."""
    model = tiny_llama()
    layers = model.model.layers
    layers[1].self_attn.o_proj.weight = layers[0].self_attn.o_proj.weight
    with pytest.raises(UnsupportedModel, match=r"shares its weights with model.layers.1"):
        factors_of(GatedModel.wrap(model, None, name="tiny"), "L0H0")
