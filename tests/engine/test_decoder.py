"""Decoding: rows leave and enter batches, and each generation equals the one decoded alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from engine.shared_work import five_masks, heads, run
from independent import plain_generation, zeroed_by_hand

from broca.engine import Engine, decoder
from broca.engine.stop_rule import StopRule
from broca.tasks import Request
from broca.testing import tiny_llama


@pytest.fixture(scope="module")
def gates():
    """Five masks of 8 heads."""
    return five_masks()


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("budget", [60, 150, 100_000])
def test_rows_that_leave_and_enter_change_no_answer(tiny, gates, compact, budget):
    """Generations of 2 to 25 tokens in small batches equal transformers' with zeroed weights."""
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


@pytest.mark.parametrize(
    ("share", "budget"), [("off", 150), ("off", 100_000), ("on", 150), ("on", 100_000), (None, 150)]
)
def test_every_row_follows_the_settings_of_its_request(tiny, gates, monkeypatch, share, budget):
    """Rows with and without settings, under masks, equal transformers' with zeroed weights.

    So they do where a model may decode nothing together.
    """
    if share is None:
        monkeypatch.setattr(decoder.Decoder, "_runs_with_others", lambda *_: False)
    rng = np.random.default_rng(7)
    kinds = [
        {},
        {"repetition_penalty": 1.6},
        {"no_repeat_ngram_size": 1, "min_new_tokens": 5},
        {"suppress_tokens": list(range(2, 140)), "begin_suppress_tokens": [200]},
    ]
    requests = [
        Request(
            "generate_until",
            (*range(10, 40), *rng.integers(2, 258, rng.choice([3, 3, 8])).tolist()),
            max_new_tokens=int(rng.integers(5, 18)),
            settings=json.dumps(kinds[number % 4]) if number % 4 else "",
        )
        for number in range(12)
    ]
    answers, _ = run(tiny, requests, gates, share_prefixes=share or "off", token_budget=budget)
    bare = tiny_llama()
    for number, answer in enumerate(answers):
        request, mask = requests[number % 12], number // 12
        edited = zeroed_by_hand(bare, heads(gates, mask), head_dim=8)
        expected = plain_generation(
            edited, request.context, new_tokens=request.max_new_tokens, **kinds[number % 12 % 4]
        )
        assert answer.text == tiny.tokenizer.decode(expected, skip_special_tokens=True)
        assert answer.tokens == len(expected)


def test_new_rows_enter_a_running_batch(tiny, gates, monkeypatch):
    """When short generations have ended, waiting rows join the long ones in one forward pass."""
    joined = []
    take_in = decoder._Running.take_in

    def counted(self, other):
        joined.append(len(other.work))
        take_in(self, other)

    monkeypatch.setattr(decoder._Running, "take_in", counted)
    # a rule without tokenizer: a generation ends after as many tokens as its stop string is long
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


def test_stop_string_ends_a_generation(tiny, gates):
    """The text is cut before the stop string, and decoding stops there."""
    context, intact = tuple(range(40, 60)), np.zeros(1, dtype=int)
    request = Request("generate_until", context, max_new_tokens=20)
    full = Engine(tiny).run([request], gates, intact)[0]
    stop = full.text[4:6]
    assert len(stop) == 2
    stopped = Request("generate_until", context, stop=(stop,), max_new_tokens=20)
    answer = Engine(tiny).run([stopped], gates, intact)[0]
    assert answer.text == full.text.split(stop)[0]
    assert answer.tokens < full.tokens
