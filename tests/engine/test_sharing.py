"""Shared work: switched on, off or left to the planner, the answers are the same."""

from __future__ import annotations

import numpy as np
import pytest
from independent import plain_generation, plain_loglikelihood, zeroed_by_hand

from broca import designs
from broca.engine import Engine, EngineOptions, decoding
from broca.engine.prefixes import prefix_groups
from broca.engine.stopping import StopRule
from broca.engine.work import Decoding, Reading
from broca.models import GatedModel
from broca.tasks import Generation, Request
from broca.testing import tiny_llama, tiny_tokenizer

PREAMBLE = tuple(range(10, 60))


@pytest.fixture(scope="module")
def gates():
    """Five masks of 8 heads: intact, two of the upper layer alone, two of both layers."""
    masks = np.ones((5, 8), dtype=np.float32)
    masks[1, 4] = masks[2, 7] = masks[3, [1, 5]] = masks[4, [0, 2, 6]] = 0
    return masks


def heads(gates, mask):
    """(layer, head) pairs that a mask ablates."""
    return [(column // 4, column % 4) for column in np.flatnonzero(gates[mask] == 0)]


def few_shot(count, kind):
    """Requests that share a preamble and differ after it."""
    rng = np.random.default_rng(3)
    requests = []
    for number in range(count):
        own = tuple(int(t) for t in rng.integers(2, 258, rng.integers(2, 9)))
        if kind == "generate":
            requests.append(Request("generate_until", PREAMBLE + own, max_new_tokens=3 + number))
        else:
            requests += [
                Request("loglikelihood", PREAMBLE + own, choice)
                for choice in ((5,), (6, 7), (8, 9, 10))
            ]
    return requests


def run(tiny, requests, gates, **options):
    """Answers of every request under every mask, and the engine."""
    engine = Engine(tiny, EngineOptions(**options))
    index = np.repeat(np.arange(len(gates)), len(requests))
    return engine.run(list(requests) * len(gates), gates, index), engine


def same(answers, expected):
    """Texts equal, log-likelihoods to 1e-4, greedy flags equal."""
    for one, other in zip(answers, expected, strict=True):
        if isinstance(one, Generation):
            assert one == other
        else:
            assert one.value == pytest.approx(other.value, abs=1e-4)
            assert one.greedy == other.greedy


@pytest.mark.parametrize("kind", ["generate", "read"])
@pytest.mark.parametrize("budget", [70, 300, 100_000])
def test_shared_prefixes_change_no_answer(tiny, gates, kind, budget):
    """A preamble that is read once a mask gives what reading it for every row gives."""
    requests = few_shot(6, kind)
    expected, plain = run(tiny, requests, gates, share_prefixes="off", reuse_layers="off")
    answers, engine = run(
        tiny, requests, gates, share_prefixes="on", reuse_layers="off", token_budget=budget
    )
    same(answers, expected)
    assert engine.tokens < 0.6 * plain.tokens


@pytest.mark.parametrize("kind", ["generate", "read"])
def test_planner_shares_a_long_preamble(tiny, gates, kind):
    """Left to itself it does what saves work."""
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
    """With another mask in every row there is no prefix to share."""
    masks = (~designs.bernoulli(12, 8, sparsity=0.3, seed=0)).astype(np.float32)
    requests = few_shot(12, "generate")
    engine = Engine(tiny)
    answers = engine.run(requests, masks, np.arange(12))
    off = Engine(tiny, EngineOptions(share_prefixes="off"))
    same(answers, off.run(requests, masks, np.arange(12)))
    assert engine.tokens == off.tokens


@pytest.mark.parametrize("budget", [40, 100_000])
def test_reused_layers_change_no_answer(tiny, gates, budget):
    """Hidden states below the first ablated layer are those of the intact model."""
    requests = few_shot(5, "read")
    expected, _ = run(tiny, requests, gates, share_prefixes="off", reuse_layers="off")
    answers, _ = run(tiny, requests, gates, reuse_layers="on", token_budget=budget)
    same(answers, expected)


def test_planner_reuses_layers_in_a_sweep(monkeypatch):
    """In a sweep of single heads over four layers, it starts in the middle; random masks do not."""
    model = GatedModel.wrap(tiny_llama(layers=4), tiny_tokenizer(), name="four")
    starts = []
    resumed_at = GatedModel.resumed_at
    monkeypatch.setattr(
        GatedModel,
        "resumed_at",
        lambda self, layer, hidden: starts.append(layer) or resumed_at(self, layer, hidden),
    )
    requests = [
        Request("loglikelihood", (9 * n + 3, n + 5, 7, 80), choice)
        for n in range(4)
        for choice in ((5,), (6,))
    ]
    sweep = (~np.vstack([designs.intact(16), designs.singles(16)])).astype(np.float32)
    answers, _ = run(model, requests, sweep)
    assert set(starts) == {0, 1, 2, 3}
    same(answers, run(model, requests, sweep, reuse_layers="off")[0])
    starts.clear()
    random = (~designs.bernoulli(10, 16, sparsity=0.5, seed=0)).astype(np.float32)
    run(model, requests, random)
    assert not starts


def test_sweep_computes_the_first_layer_s_attention_once(monkeypatch):
    """Rows of a layer's heads begin at its output projection, for every kind that is gated."""
    model = GatedModel.wrap(
        tiny_llama(layers=3), tiny_tokenizer(), name="three", components="heads+mlp+layers"
    )
    attention = model.model.model.layers[1].self_attn
    requests = [Request("loglikelihood", (9 * n + 3, n + 5, 7, 80), (5,)) for n in range(4)]
    count = len(model.components)
    sweep = (~np.vstack([designs.intact(count), designs.singles(count)])).astype(np.float32)
    expected, _ = run(model, requests, sweep, reuse_layers="off")
    assert model.skippable == (0, 1, 2)
    rows = []
    monkeypatch.setattr(
        type(attention),
        "forward",
        _counting(type(attention).forward, attention, rows),
    )
    answers, _ = run(model, requests, sweep, reuse_layers="on")
    same(answers, expected)
    below = sum(one.layer == 0 for one in model.components)
    assert sum(rows) == len(requests) * (1 + below)  # the intact model and what lies below


def _counting(forward, module, rows):
    """A forward pass that writes down how many rows one module gets."""

    def counted(self, hidden_states, *args, **kwargs):
        if self is module:
            rows.append(len(hidden_states))
        return forward(self, hidden_states, *args, **kwargs)

    return counted


def test_planner_takes_what_saves_more(tiny, gates, monkeypatch):
    """With a long preamble under few masks, prefixes are shared and no layer is skipped."""
    started = []
    monkeypatch.setattr(GatedModel, "resumed_at", lambda *_: started.append(1))
    run(tiny, few_shot(6, "read"), gates)
    assert not started


def test_skipped_layers_are_restored_after_an_error(tiny):
    """No layer stays skipped when something fails inside."""
    import torch

    tokens = torch.arange(2, 8)[None]
    with torch.no_grad():
        before = tiny.forward(tokens, torch.ones_like(tokens), keep=6)[0]
        with pytest.raises(ZeroDivisionError), tiny.resumed_at(1, torch.zeros(1, 6, 32)):
            raise ZeroDivisionError
        assert torch.equal(tiny.forward(tokens, torch.ones_like(tokens), keep=6)[0], before)


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("budget", [60, 150, 100_000])
def test_rows_that_leave_and_enter_change_no_answer(tiny, gates, compact, budget):
    """Generations of 2 to 25 tokens in small batches: each equals its own run, once."""
    rng = np.random.default_rng(5)
    requests = [
        Request(
            "generate_until",
            tuple(int(t) for t in rng.integers(2, 258, rng.integers(1, 12))),
            max_new_tokens=int(rng.integers(2, 26)),
        )
        for _ in range(14)
    ]
    answers, _ = run(
        tiny, requests, gates, share_prefixes="off", compact=compact, token_budget=budget
    )
    bare = tiny_llama()
    for number, answer in enumerate(answers):
        request, mask = requests[number % 14], number // 14
        edited = zeroed_by_hand(bare, heads(gates, mask), head_dim=8)
        expected = plain_generation(edited, request.context, new_tokens=request.max_new_tokens)
        assert answer.text == tiny.tokenizer.decode(expected, skip_special_tokens=True)
        assert answer.tokens == len(expected)


def test_new_rows_enter_a_running_batch(tiny, gates, monkeypatch):
    """When short generations have left, others join the long ones in one forward pass."""
    joined = []
    take_in = decoding._Running.take_in

    def counted(self, other, masking):
        joined.append(len(other.work))
        take_in(self, other, masking)

    monkeypatch.setattr(decoding._Running, "take_in", counted)
    # the stop string's length stands for where the text would have ended
    monkeypatch.setattr(
        StopRule, "ended", lambda _, tokens, stop, limit: len(tokens) >= len(stop[0])
    )
    requests = [
        Request(
            "generate_until",
            (3 + n, 4, 5),
            stop=("\0" * (20 if n % 4 == 0 else 2),),
            max_new_tokens=20,
        )
        for n in range(24)
    ]
    answers, _ = run(tiny, requests, gates[:1], share_prefixes="off", token_budget=160)
    assert sum(joined) > 0
    for request, answer in zip(requests, answers, strict=True):
        expected = plain_generation(
            tiny_llama(), request.context, new_tokens=len(request.stop[0]), min_new=True
        )
        assert answer.text == tiny.tokenizer.decode(expected, skip_special_tokens=True)


@pytest.mark.parametrize("kind", ["generate", "read"])
def test_memory_shortage_in_shared_work_loses_nothing(tiny, gates, monkeypatch, kind):
    """Out of memory in the middle of shared prefixes or of decoding: every row still once."""
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


def test_groups_hold_every_row_once():
    """Grouped or alone, nothing is lost and nothing doubled; prefixes leave logits to compute."""
    rng = np.random.default_rng(0)
    work = []
    for number in range(60):
        tail = tuple(int(t) for t in rng.integers(0, 5, rng.integers(1, 6)))
        tokens = (*PREAMBLE[: int(rng.integers(0, 50))], *tail)
        if number % 2:
            work.append(Reading(int(rng.integers(3)), 0, tokens, [(number, (1,))]))
        else:
            request = Request("generate_until", tokens, max_new_tokens=4)
            work.append(Decoding(int(rng.integers(3)), 0, number, request))
    for kind in (Reading, Decoding):
        own = [one for one in work if isinstance(one, kind)]
        for switch in ("auto", "on", "off"):
            groups, alone = prefix_groups(own, switch)
            found = [one for group in groups for one in group.members] + alone
            assert sorted(map(id, found)) == sorted(map(id, own))
            for group in groups:
                assert len({one.mask for one in group.members}) == 1
                for one in group.members:
                    assert one.tokens[: len(group.prefix)] == group.prefix
                    assert len(group.prefix) <= one.sharable


def test_likelihoods_with_everything_shared_equal_zeroed_weights(tiny, gates):
    """Prefixes and layers together, against plain transformers."""
    requests = few_shot(3, "read")
    answers, _ = run(tiny, requests, gates, share_prefixes="on", reuse_layers="on")
    bare = tiny_llama()
    for number, answer in enumerate(answers):
        request, mask = requests[number % 9], number // 9
        edited = zeroed_by_hand(bare, heads(gates, mask), head_dim=8)
        value, _ = plain_loglikelihood(edited, request.context, request.continuation)
        assert answer.value == pytest.approx(value, abs=1e-4)
