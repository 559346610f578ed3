"""Output projections are found by their function."""

import pytest
import torch
from models.architectures import BY_NAME, make_model
from tiny import tiny_llama
from torch import nn

from broca.errors import UnsupportedModel
from broca.models.structure import find_structure


def test_experts_are_found_whatever_their_class_is_called():
    """Experts are found although their class has another name, as in transformers 5.0."""
    model = make_model(BY_NAME["Mixtral"])
    for layer in model.model.layers:
        experts = layer.mlp.experts
        experts.__class__ = type("NaiveMoe", (type(experts),), {})
    assert [(part.experts.path, part.expert_count) for part in find_structure(model).parts] == [
        (f"model.layers.{layer}.mlp.experts", 4) for layer in range(3)
    ]


def unequal(model):
    """Sets a number of heads of which each would be two."""
    model.config.num_attention_heads = 2


def in_pairs(model):
    """Gives the attention of a layer the weight of differential attention."""
    for layer in model.model.layers:
        layer.self_attn.lambda_q1 = nn.Parameter(torch.zeros(1))


def shared(model):
    """Puts the output projection of one layer into another, so that heads go together."""
    first, second = model.model.layers
    second.self_attn.o_proj = first.self_attn.o_proj


def mixed_early(model):
    """Mixes tokens before another projection in one layer."""
    model.model.layers[1].self_attn.q_proj.register_forward_pre_hook(
        lambda _module, args: (args[0] + args[0].cumsum(1),)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (unequal, "not of 2 heads of 8"),
        (in_pairs, "differential attention"),
        (shared, "layers 0 and 1 share one attention block"),
        (mixed_early, r"layers\.0\.self_attn\.o_proj in one layer and"),
    ],
)
def test_what_has_no_heads_of_its_own_is_refused(change, message):
    """A model whose heads cannot be told apart, or are not where they should be, is refused."""
    model = tiny_llama()
    change(model)
    with pytest.raises(UnsupportedModel, match=message):
        find_structure(model)


@pytest.mark.parametrize("seed", range(4))
def test_attention_that_looks_at_few_tokens_is_found(seed):
    """Each token looks at one or two others here, in some layers the last one not at the first."""
    model = tiny_llama(seed=seed)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight *= 30
    assert len(find_structure(model).projections) == 2


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
