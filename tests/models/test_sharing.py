"""What rows share is what the plain model allows, one row at a time, whatever rule it follows."""

import numpy as np
import pytest
import torch
import transformers
from independent import plain_generation, plain_loglikelihood
from transformers import AutoModelForCausalLM

from broca.engine import Engine, EngineOptions
from broca.errors import UnsupportedModel
from broca.models import GatedModel, sharing_checks
from broca.models.sharing import WAYS
from broca.tasks import Request
from broca.testing import tiny_llama, tiny_tokenizer

LONG = {
    "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 4,
    "long_factor": [3.0, 9.0, 20.0, 40.0], "factor": 8.0, "original_max_position_embeddings": 40,
}  # fmt: skip


TOKENS = {"vocab_size": 258, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
WITHOUT_HEAD_DIM = TOKENS | {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "initializer_range": 0.3, "max_position_embeddings": 256,
}  # fmt: skip
SIZES = WITHOUT_HEAD_DIM | {"head_dim": 8}

MODELS = {
    "mistral": ("MistralConfig", SIZES | {"sliding_window": 16}, set()),
    "gemma3": (
        "Gemma3TextConfig",
        SIZES | {"sliding_window": 16, "query_pre_attn_scalar": 8,
                 "layer_types": ["sliding_attention", "full_attention"] * 2},
        set(),
    ),
    "gpt-neo": (
        "GPTNeoConfig",
        TOKENS | {"hidden_size": 32, "num_layers": 4, "num_heads": 4, "window_size": 16,
                  "attention_types": [[["global", "local"], 2]], "max_position_embeddings": 256,
                  "initializer_range": 0.3},
        set(),
    ),
    "mpt": (
        "MptConfig",
        TOKENS | {"d_model": 32, "n_heads": 4, "n_layers": 4, "max_seq_len": 256,
                  "initializer_range": 0.3},
        set(),
    ),
    "bamba": (
        "BambaConfig",
        WITHOUT_HEAD_DIM | {"attn_layer_indices": [1, 3], "mamba_n_heads": 8, "mamba_d_head": 8,
                            "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 8},
        {"joining"},
    ),
    "jamba": (
        "JambaConfig",
        WITHOUT_HEAD_DIM | {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2,
                            "expert_layer_period": 2, "expert_layer_offset": 1,
                            "num_experts_per_tok": 1, "mamba_d_state": 8, "mamba_dt_rank": 4},
        {"joining", "prefixes"},
    ),
    "phi3": (
        "Phi3Config",
        WITHOUT_HEAD_DIM | {"rope_parameters": LONG, "original_max_position_embeddings": 40},
        {"padding", "joining", "prefixes", "layers"},
    ),
    "dynamic": (
        "LlamaConfig",
        SIZES | {"max_position_embeddings": 40, "rope_parameters": {
            "rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}},
        {"padding", "joining", "prefixes", "layers"},
    ),
}  # fmt: skip
"""Architectures with a rule that looks at positions, and what their rows must not share."""


def model_of(name):
    """Returns a tiny random model."""
    config, values, _ = MODELS[name]
    torch.manual_seed(3)
    return AutoModelForCausalLM.from_config(getattr(transformers, config)(**values)).eval()


@pytest.fixture(scope="module", params=MODELS)
def gated(request):
    """Each of the models with its gates."""
    model = model_of(request.param)
    return GatedModel.wrap(model, tiny_tokenizer(), name=request.param)


def requests_behind(prefix):
    """Returns choices and generations of unequal lengths behind a shared prefix."""
    rng = np.random.default_rng(5)
    tails = [tuple(int(token) for token in rng.integers(2, 258, n)) for n in (1, 3, 9, 20)]
    choices = [
        Request("loglikelihood", prefix + tail, choice)
        for tail in tails
        for choice in ((5,), (6, 7, 9))
    ]
    generations = [Request("generate_until", prefix + tail, max_new_tokens=8) for tail in tails]
    return [*choices, *generations, Request("generate_until", (7, 8), max_new_tokens=8)]


@pytest.mark.parametrize("length", [12, 48])
@pytest.mark.parametrize("budget", [None, 90])
def test_answers_equal_those_of_the_plain_model(gated, length, budget):
    """Shared prefixes, unequal lengths and batches of any size change no answer.

    The prefix is longer than every window, and rows lie on both sides of the length at which
    rotary embeddings are scaled.
    """
    prefix = tuple(int(t) for t in np.random.default_rng(2).integers(2, 258, length))
    requests = requests_behind(prefix)
    engine = Engine(gated, EngineOptions(token_budget=budget))
    columns = len(gated.components)
    gates = np.ones((1, columns), dtype=np.float32)
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


def test_windows_are_shared_rightly_and_scaled_positions_are_not(gated):
    """Windows and biases leave everything shared; states and scaled positions do not."""
    _, checks = sharing_checks(gated)
    missing = {way for way, check in zip(WAYS, checks, strict=True) if not check.passed}
    assert missing - {"decoding"} == MODELS[gated.name][2]
    assert all(check.detail for check in checks)


def test_a_complete_proof_holds_for_shorter_rows_and_copies():
    """A proof is made once: for shorter rows, and for the copies that lanes run."""
    gated = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="tiny")
    proof = gated.sharing(100)
    assert proof.complete
    assert gated.sharing(20) is proof
    assert gated.copy().sharing(90) is proof
    assert gated.sharing(200) is not proof


def test_rows_at_the_end_of_the_positions_are_tested_at_their_length():
    """A model with fewer positions than the next power of two is tested on what it can run."""
    model = model_of("gpt-neo")
    model.config.max_position_embeddings = 100
    model.transformer.wpe.weight.data = model.transformer.wpe.weight.data[:100]
    assert GatedModel.wrap(model, tiny_tokenizer(), name="gpt-neo").sharing(90).padding


def test_a_model_that_answers_at_random_is_refused():
    """A model whose logits change from run to run is refused by the name of its class."""
    gated = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="random")
    gated.model.model.embed_tokens.register_forward_hook(
        lambda _module, _args, output: output + torch.randn_like(output)
    )
    with pytest.raises(
        UnsupportedModel, match=r"'LlamaForCausalLM'.*tokens other answers each time"
    ):
        gated.sharing(16)


def test_a_model_that_sees_padding_shares_nothing():
    """Where the first position of a batch changes every row, nothing is padded or shared."""
    model = tiny_llama()
    model.model.embed_tokens.register_forward_hook(
        lambda _module, args, output: output + 0.3 * output.shape[1]
    )
    gated = GatedModel.wrap(model, tiny_tokenizer(), name="sees padding")
    assert not any(getattr(gated.sharing(16), way) for way in ("padding", "prefixes", "layers"))
