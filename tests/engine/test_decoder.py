"""Decoding: rows leave and enter batches, and each generation equals the one decoded alone."""

import json

import numpy as np
import pytest
from engine.shared_work import run, zeroed
from independent import plain_generation

from broca.engine import decoder
from broca.models import GatedModel
from broca.tasks import Request


@pytest.mark.parametrize(
    ("share", "budget", "compact"),
    [
        ("off", 300, True), ("off", 1, True), ("off", 100_000, True), ("off", 60, False),
        ("off", 100_000, False), ("on", 100, True), ("on", 100_000, True), (None, 100, True),
    ],
)  # fmt: skip
def test_generations_equal_zeroed_weights(tiny, monkeypatch, share, budget, compact):
    """Rows leave and enter batches, each with its settings, and equal transformers' generations.

    So they do where a model may decode nothing together.
    """
    if share is None:
        monkeypatch.setattr(decoder.Decoder, "_runs_with_others", lambda *_: False)
    joined, take_in = [], decoder.Running.take_in
    monkeypatch.setattr(
        decoder.Running, "take_in", lambda self, new: joined.append(new) or take_in(self, new)
    )
    rng = np.random.default_rng(7)
    kinds = [{}, {"repetition_penalty": 1.6}, {"no_repeat_ngram_size": 1, "min_new_tokens": 5}]
    kinds.append({"suppress_tokens": list(range(2, 140)), "begin_suppress_tokens": [200]})
    requests = []
    for number in range(12):
        context = (*range(10, 40), *rng.integers(2, 258, rng.choice([3, 3, 8])).tolist())
        new = int(rng.integers(5, 25))
        settings = json.dumps(kinds[number % 4]) if number % 4 else ""
        requests.append(Request("generate_until", context, max_new_tokens=new, settings=settings))
    answers, _ = run(
        tiny, requests, share_prefixes=share or "off", compact=compact, token_budget=budget
    )
    assert bool(joined) == (budget == 300)
    for number, answer in enumerate(answers):
        request, mask = requests[number % 12], number // 12
        settings = kinds[number % 12 % 4]
        expected = plain_generation(
            zeroed(mask), request.context, new_tokens=request.max_new_tokens, **settings
        )
        assert answer.text == tiny.tokenizer.decode(expected, skip_special_tokens=True)
        assert answer.tokens == len(expected)


def test_an_ended_row_does_not_grow(tiny, monkeypatch):
    """No row of a batch reaches a position that it would not reach alone."""
    lengths, forward = [], GatedModel.forward

    def noting(self, tokens, attention, **options):
        lengths.append(int(attention.sum(1).max()))
        return forward(self, tokens, attention, **options)

    monkeypatch.setattr(GatedModel, "forward", noting)
    long, short = ((tuple(range(10, 50)), 2), ((9, 10), 30))
    requests = [Request("generate_until", c, max_new_tokens=n) for c, n in (long, *[short] * 15)]
    run(tiny, requests, np.ones((1, 8), np.float32), share_prefixes="off", token_budget=100_000)
    assert len(lengths) > 20
    assert max(lengths) == 41


def test_stop_string_ends_a_generation(tiny):
    """The text is cut before the stop string, and decoding stops there."""

    def answer(*stop):
        request = Request("generate_until", tuple(range(40, 60)), stop=stop, max_new_tokens=20)
        return run(tiny, [request])[0][0]

    full = answer()
    stop = full.text[4:6]
    assert len(stop) == 2
    stopped = answer(stop)
    assert stopped.text == full.text.split(stop)[0]
    assert stopped.tokens < full.tokens
