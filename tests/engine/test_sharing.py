"""Shared prefixes and reused layers give the same answers as rows computed one by one."""

from __future__ import annotations

import numpy as np
import pytest
from engine.shared_work import PREAMBLE, five_masks, heads, run, same
from independent import plain_loglikelihood, zeroed_by_hand

from broca import designs
from broca.engine import Engine, EngineOptions
from broca.models import GatedModel
from broca.tasks import Request
from broca.testing import tiny_llama


@pytest.fixture(scope="module")
def gates():
    """Five masks of 8 heads."""
    return five_masks()


def few_shot(count, kind):
    """Returns requests that share a preamble and differ after it."""
    rng = np.random.default_rng(3)
    requests = []
    for number in range(count):
        tail = tuple(int(t) for t in rng.integers(2, 258, rng.integers(2, 9)))
        if kind == "generate":
            requests.append(Request("generate_until", PREAMBLE + tail, max_new_tokens=3 + number))
        else:
            requests += [
                Request("loglikelihood", PREAMBLE + tail, choice)
                for choice in ((5,), (6, 7), (8, 9, 10))
            ]
    return requests


@pytest.mark.parametrize("kind", ["generate", "read"])
@pytest.mark.parametrize("budget", [70, 300, 100_000])
def test_shared_prefixes_change_no_answer(tiny, gates, kind, budget):
    """A preamble that is read once for each mask gives the answers of reading it for every row."""
    requests = few_shot(6, kind)
    expected, plain = run(tiny, requests, gates, share_prefixes="off", reuse_layers="off")
    answers, engine = run(
        tiny, requests, gates, share_prefixes="on", reuse_layers="off", token_budget=budget
    )
    same(answers, expected)
    assert engine.tokens < 0.6 * plain.tokens


@pytest.mark.parametrize("kind", ["generate", "read"])
def test_planner_shares_a_long_preamble(tiny, gates, kind):
    """The planner shares a long preamble by default and reads at least 40 % fewer tokens."""
    _, plain = run(tiny, few_shot(6, kind), gates, share_prefixes="off", reuse_layers="off")
    _, auto = run(tiny, few_shot(6, kind), gates, reuse_layers="off")
    assert auto.tokens < 0.6 * plain.tokens


def test_planner_shares_the_context_of_choices(tiny, gates):
    """Choices of several tokens after one context read the context once."""
    context = tuple(range(30, 80))
    requests = [Request("loglikelihood", context, (t, t + 1, t + 2)) for t in (3, 90, 120, 200)]
    expected, plain = run(tiny, requests, gates, share_prefixes="off", reuse_layers="off")
    answers, auto = run(tiny, requests, gates, reuse_layers="off")
    same(answers, expected)
    assert auto.tokens < 0.4 * plain.tokens


def test_fresh_masks_share_nothing(tiny):
    """If every row has another mask, no prefix is shared and no token is saved."""
    masks = (~designs.bernoulli(12, 8, sparsity=0.3, seed=0)).astype(np.float32)
    requests = few_shot(12, "generate")
    engine = Engine(tiny)
    answers = engine.run(requests, masks, np.arange(12))
    off = Engine(tiny, EngineOptions(share_prefixes="off"))
    same(answers, off.run(requests, masks, np.arange(12)))
    assert engine.tokens == off.tokens


@pytest.mark.parametrize("budget", [40, 100_000])
def test_reused_layers_change_no_answer(tiny, gates, budget):
    """Hidden states of the intact model below the first ablated layer give the same answers."""
    requests = few_shot(5, "read")
    expected, _ = run(tiny, requests, gates, share_prefixes="off", reuse_layers="off")
    answers, _ = run(tiny, requests, gates, reuse_layers="on", token_budget=budget)
    same(answers, expected)


def test_planner_takes_what_saves_more(tiny, gates, monkeypatch):
    """With a long preamble under few masks, prefixes are shared and no layer is skipped."""
    started = []
    monkeypatch.setattr(GatedModel, "resumed_at", lambda *_: started.append(1))
    run(tiny, few_shot(6, "read"), gates)
    assert not started


@pytest.mark.parametrize("kind", ["generate", "read"])
def test_memory_shortage_in_shared_work_loses_nothing(tiny, gates, monkeypatch, kind):
    """A shortage of memory in shared prefixes or decoding loses no row and shrinks the budget."""
    import torch

    requests = few_shot(6, kind)
    expected, _ = run(tiny, requests, gates)
    forward, calls = GatedModel.forward, [0]

    def sometimes_short(self, tokens, *args, **kwargs):
        calls[0] += 1
        if calls[0] in (2, 5, 9) and len(tokens) > 1:
            raise torch.OutOfMemoryError("no memory")
        return forward(self, tokens, *args, **kwargs)

    monkeypatch.setattr(GatedModel, "forward", sometimes_short)
    answers, engine = run(tiny, requests, gates, token_budget=1000)
    same(answers, expected)
    assert engine.token_budget < 1000


def test_likelihoods_with_everything_shared_equal_zeroed_weights(tiny, gates):
    """Sharing both prefixes and layers gives the log-likelihoods of zeroed weights."""
    requests = few_shot(3, "read")
    answers, _ = run(tiny, requests, gates, share_prefixes="on", reuse_layers="on")
    bare = tiny_llama()
    for number, answer in enumerate(answers):
        request, mask = requests[number % 9], number // 9
        edited = zeroed_by_hand(bare, heads(gates, mask), head_dim=8)
        value, _ = plain_loglikelihood(edited, request.context, request.continuation)
        assert answer.value == pytest.approx(value, abs=1e-4)
