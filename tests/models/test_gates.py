"""Gates are exact for every row, and the kinds of component have theirs."""

import pytest
import torch

from broca.components import NAMINGS, Component
from broca.errors import BadInput, UnknownName
from broca.models import KINDS, GatedModel, captured, kinds_of
from broca.testing import tiny_llama, tiny_tokenizer


@pytest.fixture
def batch(tiny):
    """Three rows of six tokens, the last two left-padded."""
    tokens = torch.randint(2, 258, (3, 6), generator=torch.Generator().manual_seed(0))
    attention = torch.ones_like(tokens)
    attention[1, :2] = 0
    attention[2, :4] = 0
    return tokens, attention


def logits(model, tokens, attention):
    """Returns the logits of every position."""
    with torch.no_grad():
        return model.forward(tokens, attention, keep=tokens.shape[1])[0]


@pytest.mark.parametrize("way_back", ["none", "cut off"])
def test_a_model_without_a_way_back_is_not_differentiable(way_back):
    """A model is not differentiable if an operation refuses gradients or stops them."""
    plain = tiny_llama()

    def refuse(_module, _args, output):
        if output.requires_grad:
            raise RuntimeError("no way back")

    def cut(_module, _args, output):
        return output.detach()

    projection = plain.model.layers[0].self_attn.o_proj
    assert GatedModel.wrap(plain, tiny_tokenizer(), name="tiny").differentiable
    projection.register_forward_hook(refuse if way_back == "none" else cut)
    assert not GatedModel.wrap(plain, tiny_tokenizer(), name="tiny").differentiable


def test_gate_scales_the_slice_of_the_projections_input(tiny, batch):
    """A gate multiplies the head's slice of the projection's input and leaves the others."""
    point = tiny.points[0]
    activations = []
    gates = torch.ones(3, len(tiny.components))
    gates[:, 1] = 0.25
    with captured(tiny.points) as inputs:
        logits(tiny, *batch)
        plain = inputs[point].clone()
    with tiny.gates(gates):
        hook = point.module.register_forward_pre_hook(
            lambda _, args: activations.append(args[0].clone())
        )
        logits(tiny, *batch)
        hook.remove()
    expected = plain.clone()
    expected[..., point.width : 2 * point.width] *= 0.25
    assert torch.equal(activations[0], expected)


def test_selected_rows_keep_their_gates(tiny, batch):
    """When rows leave a batch, the others keep their gates."""
    tokens, attention = batch
    gates = torch.ones(3, len(tiny.components))
    gates[0, 0] = gates[2, 5] = 0
    with tiny.gates(gates):
        full = logits(tiny, tokens, attention)
    with tiny.gates(gates) as active:
        active.select(torch.tensor([2, 0]))
        part = logits(tiny, tokens[[2, 0]], attention[[2, 0]])
    torch.testing.assert_close(part, full[[2, 0]], atol=1e-5, rtol=1e-5)


def test_gates_for_another_number_of_rows_are_refused(tiny, batch):
    """A batch under gates for another number of rows is refused."""
    with (
        pytest.raises(RuntimeError, match="3 rows under gates for 2"),
        tiny.gates(torch.zeros(2, len(tiny.components))),
    ):
        logits(tiny, *batch)


def test_a_kind_finds_components_of_the_kind_of_its_example():
    """Each kind but experts finds components like its example, gated at the place it names."""
    for name, kind in KINDS.items():
        if name == "experts":
            continue
        model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny", components=name)
        kinds = {component.kind for component in model.components}
        assert kinds == {Component.parse(kind.example).kind}
        assert {point.place for point in model.points} == {kind.place}


def test_kinds_are_joined_in_the_order_given():
    """The columns of the first kind come first."""
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny", components="mlp+heads")
    assert model.components.names[:3] == ("L0M", "L1M", "L0H0")


@pytest.mark.parametrize(
    ("components", "error", "message"),
    [
        ("heads+heads", BadInput, "`components` 'heads[+]heads' names a kind twice"),
        ("haeds", UnknownName, "did you mean 'heads'"),
    ],
)
def test_kinds_that_make_no_sense_are_refused(components, error, message):
    """A repeated or misspelt kind is refused by its name."""
    with pytest.raises(error, match=message):
        GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny", components=components)


def test_kinds_are_found_from_components():
    """Kinds are listed in the order of their components, each once."""
    components = [Component.parse(name) for name in ("L0H1", "L1M", "L0H0", "L0G1", "L2", "L0A")]
    assert kinds_of(components) == "heads+mlp+kv-groups+layers+attention"
    assert kinds_of([]) == ""
    assert {Component.parse(kind.example).kind for kind in KINDS.values()} == set(NAMINGS)
