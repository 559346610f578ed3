"""The self-test passes on sound models and fails on each kind of fault."""

import dataclasses

import numpy as np
import peft
import pytest
import torch
from independent import plain_loglikelihood
from tiny import tiny_llama, tiny_tokenizer

from broca.engine import Engine
from broca.errors import BadInput, SelfTestFailed
from broca.models import GatedModel, self_test
from broca.models.selftest import require_self_test
from broca.tasks import Request


@pytest.fixture
def model():
    """A fresh tiny model that a test may break."""
    return GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny")


def failed(model):
    """Returns the names of the checks that fail."""
    return [check.name for check in self_test(model) if not check.passed]


FAULTS = {
    "a batch of mixed masks equals its rows": (
        "model.embed_tokens", lambda output: output + 0.5 * output.mean(0, keepdim=True)
    ),
    "slices make up the projection's output": (
        "model.layers.0.self_attn.o_proj", lambda output: output.tanh() * 3
    ),
}  # fmt: skip
"""Where a model is broken, and how, by the check that fails."""


@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_fails_its_check(model, check):
    """Rows that depend on each other and a projection that is not linear fail while they last."""
    path, change = FAULTS[check]
    module = model.model.get_submodule(path)
    with module.register_forward_hook(lambda _m, _a, output: change(output)):
        assert check in failed(model)
    assert failed(model) == []


def test_head_that_contributes_nothing_is_caught(model):
    """A head that the output projection does not read fails with its name."""
    module = model.points[1].module
    read = torch.ones(32).index_fill(0, torch.arange(8, 16), 0)
    module.forward = lambda x: torch.nn.functional.linear(x * read, module.weight)
    with pytest.raises(SelfTestFailed, match=r"L1H1 contributes nothing at model\.layers\.1"):
        require_self_test(model)


@pytest.mark.parametrize("which", ["its columns", "its values", "its factors in IA3", "rounding"])
def test_a_head_without_effect_and_rounding_are_no_failure(which):
    """A pruned head, one that an adapter switches off, and rows alone that round otherwise pass."""
    model = tiny_llama()
    attention = model.model.layers[1].self_attn
    with torch.no_grad():
        if which == "its columns":
            attention.o_proj.weight[:, 8:16] = 0
        elif which == "its values":  # KV head 0 serves heads 0 and 1
            attention.v_proj.weight[:8] = 0
        elif which == "rounding":  # kernels of GPUs depend on the number of rows
            step = torch.tensor([1, 1 + 2**-7] * 16).bfloat16()
            model.bfloat16().model.embed_tokens.register_forward_hook(
                lambda _m, _args, output: output * step if len(output) == 1 else output
            )
        else:
            config = peft.IA3Config(target_modules=["o_proj"], feedforward_modules=["o_proj"])
            model = peft.get_peft_model(model, config)
            for name, factors in model.named_parameters():
                if "ia3" in name and "layers.1" in name:
                    factors.view(-1)[8:16] = 0
    assert failed(GatedModel.wrap(model, tiny_tokenizer(), name="pruned")) == []


def test_weights_that_layers_share_are_not_zeroed_for_one_of_them():
    """Weights that two layers share are not zeroed, because that would ablate both layers."""
    plain = tiny_llama()
    plain.model.layers[1].self_attn.o_proj.weight = plain.model.layers[0].self_attn.o_proj.weight
    checks = self_test(GatedModel.wrap(plain, tiny_tokenizer(), name="tied"))
    assert all(check.passed for check in checks)
    assert any(check.detail.startswith("no component has weights") for check in checks)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_padded_vocabulary_of_minus_infinity_is_fine(dtype):
    """Logits of -inf for tokens that are never used leave all others what they are."""
    padded = tiny_llama().to(dtype)
    padded.lm_head.register_forward_hook(
        lambda _module, _args, out: out.index_fill(-1, torch.tensor([256, 257]), float("-inf"))
    )
    model = GatedModel.wrap(padded, tiny_tokenizer(), name="padded")
    require_self_test(model)
    assert model.sharing(16).complete
    requests = [Request("loglikelihood", (5, 6, 7), choice) for choice in ((8, 9), (257,))]
    requests.append(Request("generate_until", (5, 6, 7), max_new_tokens=5))
    scored, impossible, _ = Engine(model).run(requests, np.ones((1, 8), "f4"), np.zeros(3, int))
    expected, _ = plain_loglikelihood(padded, (5, 6, 7), (8, 9))
    assert scored.value == pytest.approx(expected, abs=1e-4)
    assert impossible.value == float("-inf")


def test_weights_that_are_no_numbers_are_named(model):
    """A NaN weight is refused by the name of its tensor."""
    model.model.model.layers[1].mlp.up_proj.weight.data[3, 4] = float("nan")
    with pytest.raises(BadInput, match=r"layers\.1\.mlp\.up_proj\.weight holds NaN"):
        require_self_test(model)


def test_a_gate_at_another_projection_than_the_named_one_is_caught(model):
    """Heads that are gated at a projection that is not the block's output projection fail."""
    attention = model.model.model.layers[1].self_attn
    wrong = dataclasses.replace(model.points[1], module=attention.q_proj)
    broken = dataclasses.replace(model, points=(model.points[0], wrong))
    assert "gates of zero equal zeroed weights" in failed(broken)
