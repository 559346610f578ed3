"""The self-test passes on sound models and fails on each kind of fault."""

import dataclasses

import pytest
import torch

from broca.errors import SelfTestFailed
from broca.models import GatedModel, require_self_test, self_test
from broca.testing import tiny_llama, tiny_tokenizer


@pytest.fixture
def model():
    """A fresh tiny model that a test may break."""
    return GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny")


def failed(model):
    """Returns the names of the checks that fail."""
    return [check.name for check in self_test(model) if not check.passed]


def test_sound_model_passes_every_check(model):
    """A sound model passes four checks, each with a detail and a time."""
    checks = self_test(model)
    assert len(checks) == 4
    assert all(check.passed and check.detail and check.seconds >= 0 for check in checks)


def test_self_test_leaves_the_weights_bit_for_bit(model):
    """Columns that the self-test zeroes are restored."""
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    self_test(model)
    for name, value in model.model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_head_that_contributes_nothing_is_caught(model):
    """A head that the output projection does not read fails with its name."""
    module = model.points[1].module
    read = torch.ones(32)
    read[8:16] = 0
    module.forward = lambda x: torch.nn.functional.linear(x * read, module.weight)
    with pytest.raises(SelfTestFailed, match=r"L1H1 contributes nothing at model\.layers\.1"):
        require_self_test(model)


def test_gates_of_half_a_head_give_other_logits(model):
    """Gates that act on half of each head give other logits than the gates of the heads."""
    half = dataclasses.replace(model.points[0], units=8, width=4, first_column=0)
    assert half.columns.stop == 8  # columns of two layers at one point
    broken = dataclasses.replace(model, points=(half,))
    halves = torch.ones(1, 8)
    halves[0, 0] = 0  # L0H0, but only its first half is gated
    tokens = torch.arange(2, 8)[None]
    with torch.no_grad():
        with broken.gates(halves):
            half_gated = broken.forward(tokens, torch.ones_like(tokens), keep=6)[0]
        with model.gates(halves):
            gated = model.forward(tokens, torch.ones_like(tokens), keep=6)[0]
    assert (half_gated - gated).abs().max() > 1e-4


def test_model_that_leaks_between_rows_is_caught(model):
    """A model whose rows depend on each other fails the check of batches."""
    embedding = model.model.get_input_embeddings()
    handle = embedding.register_forward_hook(
        lambda _m, _a, out: out + 0.5 * out.mean(0, keepdim=True)
    )
    assert "a batch of mixed masks equals its rows" in failed(model)
    handle.remove()
    assert failed(model) == []


def test_projection_that_is_not_linear_is_caught(model):
    """A projection that is not linear fails the check of contributions."""
    handle = model.points[0].module.register_forward_hook(lambda _m, _a, out: out.tanh() * 3)
    assert "slices make up the projection's output" in failed(model)
    handle.remove()
    assert failed(model) == []


@pytest.mark.parametrize("which", ["its columns", "its values"])
def test_a_head_without_weights_is_no_failure(which):
    """A head without weights, as in pruned or exported models, passes: it has no effect."""
    model = tiny_llama()
    attention = model.model.layers[0].self_attn
    with torch.no_grad():
        if which == "its columns":
            attention.o_proj.weight[:, 8:16] = 0
        else:  # KV head 0 serves heads 0 and 1
            attention.v_proj.weight[:8] = 0
    assert all(check.passed for check in self_test(GatedModel.wrap(model, None, name="pruned")))


def test_weights_that_layers_share_are_not_zeroed_for_one_of_them(model):
    """Weights that two layers share are not zeroed, because that would ablate both layers."""
    first, second = model.model.model.layers
    second.self_attn.o_proj.weight = first.self_attn.o_proj.weight
    tied = GatedModel.wrap(model.model, tiny_tokenizer(), name="tied")
    assert failed(tied) == []
    checks = {check.name: check.detail for check in self_test(tied)}
    assert checks["gates of zero equal zeroed weights"].startswith("no component has weights")
