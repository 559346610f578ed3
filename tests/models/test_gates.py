"""Gates are exact, and removed when their context ends."""

import pytest
import torch

from broca.models import GatedModel, captured
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


def test_gates_of_one_change_no_bit(tiny, batch):
    """Gates of one at every point leave every logit unchanged."""
    bare = logits(tiny, *batch)
    with tiny.gates(torch.ones(3, len(tiny.components)), force=True):
        assert torch.equal(logits(tiny, *batch), bare)


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


def test_every_row_has_its_own_gates(tiny, batch):
    """Closing a gate in one row changes the logits of that row alone."""
    bare = logits(tiny, *batch)
    gates = torch.ones(3, len(tiny.components))
    gates[1, 2] = 0
    with tiny.gates(gates):
        gated = logits(tiny, *batch)
    changed = [not torch.equal(gated[row], bare[row]) for row in range(3)]
    assert changed == [False, True, False]


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
