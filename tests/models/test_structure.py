"""Output projections are found by their function."""

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, MixtralConfig

from broca.errors import UnsupportedModel
from broca.models import find_structure
from broca.testing import tiny_llama


def test_experts_are_found_whatever_their_class_is_called():
    """Experts are found although their class has another name, as in transformers 5.0."""
    config = MixtralConfig(
        vocab_size=100, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config).eval()
    for layer in model.model.layers:
        experts = layer.mlp.experts
        experts.__class__ = type("NaiveMoe", (type(experts),), {})
    parts = find_structure(model).parts
    assert [part.experts.path for part in parts] == [
        f"model.layers.{layer}.mlp.experts" for layer in range(3)
    ]
    assert {part.expert_count for part in parts} == {4}


def test_width_that_the_heads_do_not_divide_is_refused():
    """A projection whose width is no multiple of the heads is refused."""
    model = tiny_llama()
    model.config.num_attention_heads = 5
    with pytest.raises(UnsupportedModel, match="5 heads do not divide"):
        find_structure(model)


def test_layers_that_do_not_mix_tokens_are_listed():
    """A layer without working attention is listed as not covered, and the others are found."""

    class Silent(nn.Module):
        def forward(self, hidden_states, **_):
            return torch.zeros_like(hidden_states), None

    model = tiny_llama(layers=3)
    model.model.layers[1].self_attn = Silent()
    structure = find_structure(model)
    assert [projection.layer for projection in structure.projections] == [0, 2]
    assert [layer.layer for layer in structure.not_covered] == [1]


def test_an_attention_block_that_layers_share_is_refused():
    """An output projection in two layers is refused: its heads cannot be ablated apart."""
    model = tiny_llama()
    first, second = model.model.layers
    second.self_attn.o_proj = first.self_attn.o_proj
    with pytest.raises(UnsupportedModel, match="layers 0 and 1 share one attention block"):
        find_structure(model)


def test_a_projection_that_disagrees_with_other_layers_is_refused():
    """Where tokens mix before another projection in one layer, the model is refused by name."""
    model = tiny_llama()
    model.model.layers[1].self_attn.q_proj.register_forward_pre_hook(
        lambda _module, args: (args[0] + args[0].cumsum(1),)
    )
    with pytest.raises(UnsupportedModel, match=r"layers\.0\.self_attn\.o_proj in one layer and"):
        find_structure(model)


def test_streams_after_the_tokens_are_disturbed_in_their_row():
    """A model whose layers take (rows, tokens, streams, width), like hy_v4, is found whole."""
    from transformers import HYV4Config, HYV4ForCausalLM

    torch.manual_seed(0)
    config = HYV4Config(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, q_lora_rank=8, kv_lora_rank=8,
        qk_nope_head_dim=4, qk_rope_head_dim=4, v_head_dim=8, n_routed_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=16, index_n_heads=2, index_head_dim=8,
        index_topk=64, mlp_layer_types=["dense", "sparse"], initializer_range=0.2, pad_token_id=0,
    )  # fmt: skip
    structure = find_structure(HYV4ForCausalLM(config).eval())
    paths = [projection.path for projection in structure.projections]
    assert paths == [f"model.layers.{layer}.self_attn.o_proj" for layer in (0, 1)]
