"""What rows share is what the plain model allows, one row at a time, whatever rule it follows."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from independent import plain_generation, plain_loglikelihood
from models.architectures import BY_NAME, HEADS, HIDDEN, LAYERS, Architecture, make_model
from tiny import tiny_llama, tiny_tokenizer

from broca.engine import Engine, EngineOptions
from broca.errors import UnsupportedModel
from broca.models import GatedModel, sharing_checks
from broca.models.sharing import WAYS
from broca.tasks import Request

LONG = {
    "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 8,
    "long_factor": [3.0, 9.0, 20.0, 40.0] * 2, "factor": 8.0,
    "original_max_position_embeddings": 40,
}  # fmt: skip
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
NEO = Architecture(
    "GPT-Neo", "GPTNeoConfig", sizes={
        "hidden_size": HIDDEN, "num_layers": LAYERS, "num_heads": HEADS, "window_size": 16,
        "attention_types": [[["local"], LAYERS]], "max_position_embeddings": 128,
    },
)  # fmt: skip
JAMBA = {"num_experts": 2, "expert_layer_period": 2, "expert_layer_offset": 1}

MODELS = {
    "Mistral": (BY_NAME["Mistral"], {"sliding_window": 16}, set()),
    "Gemma 3": (BY_NAME["Gemma 3 (text)"], {"sliding_window": 16}, set()),
    "GPT-Neo": (NEO, {}, set()),
    "MPT": (BY_NAME["MPT"], {}, set()),
    "Bamba": (BY_NAME["Bamba"], {}, {"joining"}),
    "Jamba": (BY_NAME["Jamba"], JAMBA, {"joining", "prefixes"}),
    "Phi-3": (
        BY_NAME["Phi-3"], {"rope_parameters": LONG, "original_max_position_embeddings": 40},
        {"padding", "joining", "prefixes", "layers"},
    ),
    "dynamic": (
        BY_NAME["Llama"], {"rope_parameters": DYNAMIC, "max_position_embeddings": 40},
        {"padding", "joining", "prefixes", "layers"},
    ),
}  # fmt: skip
"""Architectures with a rule that looks at positions, and what their rows must not share."""


def model_of(name, **changes):
    """Returns a tiny random model."""
    architecture, more, _ = MODELS[name]
    return make_model(replace(architecture, changes={**architecture.changes, **more, **changes}))


@pytest.fixture(scope="module", params=MODELS)
def gated(request):
    """Each of the models with its gates."""
    return GatedModel.wrap(model_of(request.param), tiny_tokenizer(), name=request.param)


@pytest.mark.parametrize("length", [12, 48])
@pytest.mark.parametrize("budget", [None, 90])
def test_answers_equal_those_of_the_plain_model(gated, length, budget):
    """Shared prefixes, unequal lengths and batches of any size change no answer.

    The prefix is longer than every window, and rows lie on both sides of the length at which
    rotary embeddings are scaled.
    """
    rng = np.random.default_rng(5)
    prefix, *tails = (
        tuple(rng.integers(3, gated.vocabulary, count).tolist()) for count in (length, 1, 3, 9, 20)
    )
    requests = [
        Request("loglikelihood", prefix + tail, choice)
        for tail in tails
        for choice in ((5,), (6, 7))
    ]
    requests += [
        Request("generate_until", context, max_new_tokens=8)
        for context in ((7, 8), *(prefix + tail for tail in tails))
    ]
    engine = Engine(gated, EngineOptions(token_budget=budget))
    gates = np.ones((1, len(gated.components)), dtype=np.float32)
    answers = engine.run(requests, gates, np.zeros(len(requests), dtype=int))
    fresh = model_of(gated.name)
    for request, answer in zip(requests, answers, strict=True):
        if gated.name == "dynamic":  # its embeddings remember the longest row so far
            fresh = model_of(gated.name)
        if request.kind == "loglikelihood":
            value, greedy = plain_loglikelihood(fresh, request.context, request.continuation)
            assert answer.value == pytest.approx(value, abs=1e-3)
            assert answer.greedy == greedy
        else:
            tokens = plain_generation(fresh, request.context, new_tokens=8)
            text = gated.tokenizer.decode(tokens, skip_special_tokens=True)
            assert answer.text == text, request


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MODELS)
def test_windows_are_shared_rightly_and_scaled_positions_are_not(name, dtype):
    """Windows, biases and rounding leave everything shared; states and scaled positions do not."""
    _, checks = sharing_checks(GatedModel.wrap(model_of(name).to(dtype), tiny_tokenizer(), name=""))
    missing = {way for way, check in zip(WAYS, checks, strict=True) if not check.passed}
    assert missing - {"decoding"} == MODELS[name][2]
    assert all(check.detail for check in checks)


def test_a_complete_proof_holds_for_shorter_rows_and_copies():
    """A proof, which rounding does not spoil, is made once: for shorter rows, and for copies."""
    gated = GatedModel.wrap(tiny_llama(layers=12).bfloat16(), tiny_tokenizer(), name="tiny")
    proof = gated.sharing(100)
    assert proof.complete
    assert gated.sharing(20) is proof
    assert gated.copy().sharing(90) is proof
    assert gated.sharing(200) is not proof


def test_rows_at_the_end_of_the_positions_are_tested_at_their_length():
    """A model with fewer positions than the next power of two is tested on what it can run."""
    model = model_of("GPT-Neo", max_position_embeddings=100)
    assert GatedModel.wrap(model, tiny_tokenizer(), name="short").sharing(90).padding


@pytest.mark.parametrize(
    ("drawn", "by"), [(slice(None), 1), (slice(1), 1), (slice(1), 0)], ids=["rows", "calls", "none"]
)
def test_a_model_that_answers_at_random_is_refused(drawn, by):
    """A model that draws anew for rows or calls is refused by its name, even if all draws agree."""
    gated = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="random")
    gated.model.model.embed_tokens.register_forward_hook(
        lambda _module, _args, output: output + by * torch.randn_like(output[drawn, :1])
    )
    message = r"'LlamaForCausalLM'.*tokens other answers each time"
    with pytest.raises(UnsupportedModel, match=message):
        gated.sharing(16)


def test_a_model_that_sees_padding_shares_nothing():
    """Where the first position of a batch changes every row, nothing is padded or shared."""
    model = tiny_llama()
    model.model.embed_tokens.register_forward_hook(
        lambda _module, args, output: output + 0.3 * output.shape[1]
    )
    gated = GatedModel.wrap(model, tiny_tokenizer(), name="sees padding")
    assert not any(getattr(gated.sharing(16), way) for way in ("padding", "prefixes", "layers"))
