"""The engine against plain transformers on weights zeroed by hand."""

import numpy as np
import pytest
import torch
from independent import plain_generation, plain_loglikelihood, zeroed_by_hand

import broca
from broca.engine import Engine, EngineOptions
from broca.errors import BadInput, BadLogits, OutOfMemory
from broca.models import GatedModel
from broca.tasks import Generation, LogLikelihood, Request
from broca.tasks.margins import Margin
from broca.testing import tiny_llama, tiny_tokenizer

HEAD_DIM = 8
MASKS = [(), ((0, 1),), ((1, 3), (0, 0)), ((0, 0), (0, 1), (0, 2), (0, 3), (1, 2))]
"""Ablated (layer, head) pairs of each mask."""


@pytest.fixture(scope="module")
def bare():
    """The tiny model without broca."""
    return tiny_llama()


@pytest.fixture(scope="module")
def gates():
    """Gates of MASKS, `(masks, 8)`."""
    values = np.ones((len(MASKS), 8), dtype=np.float32)
    for row, heads in enumerate(MASKS):
        for layer, head in heads:
            values[row, 4 * layer + head] = 0
    return values


def prompts(count, *, seed=0):
    """Returns token prompts of 1 to 29 tokens."""
    rng = np.random.default_rng(seed)
    return [tuple(int(t) for t in rng.integers(2, 258, rng.integers(1, 30))) for _ in range(count)]


def crossed(requests):
    """Returns every request under every mask, and the index of each one's mask."""
    index = np.repeat(np.arange(len(MASKS)), len(requests))
    return list(requests) * len(MASKS), index


def loglikelihood_requests():
    """Returns requests with continuations of one to four tokens."""
    continuations = [(5,), (9, 200), (7, 7, 7), (2, 3, 4, 5)]
    return [
        Request("loglikelihood", context, continuations[number % 4])
        for number, context in enumerate(prompts(9))
    ]


def generation_requests(limit=4):
    """Returns generations without stop strings, of `limit` tokens and more, each longer by one."""
    return [
        Request("generate_until", context, max_new_tokens=limit + number)
        for number, context in enumerate(prompts(9, seed=1))
    ]


def answered(tiny, bare, gates, requests, budget):
    """Yields every request under every mask, the engine's answer, and the model zeroed by hand."""
    requests, index = crossed(requests)
    answers = Engine(tiny, EngineOptions(token_budget=budget)).run(requests, gates, index)
    for request, mask, answer in zip(requests, index, answers, strict=True):
        yield request, answer, zeroed_by_hand(bare, MASKS[mask], head_dim=HEAD_DIM)


@pytest.mark.parametrize("budget", [1, 40, 100_000])
def test_loglikelihoods_equal_zeroed_weights(tiny, bare, gates, budget):
    """Log-likelihoods and greedy flags equal those of zeroed weights, whatever the batch size."""
    for request, answer, edited in answered(tiny, bare, gates, loglikelihood_requests(), budget):
        value, greedy = plain_loglikelihood(edited, request.context, request.continuation)
        assert isinstance(answer, LogLikelihood)
        assert answer.value == pytest.approx(value, abs=1e-5 * max(1, abs(value)))
        assert answer.greedy == greedy


@pytest.mark.parametrize("budget", [1, 200, 100_000])
def test_generations_equal_zeroed_weights(tiny, bare, gates, budget):
    """Generated tokens equal those of transformers with the heads' columns zeroed."""
    for request, answer, edited in answered(tiny, bare, gates, generation_requests(), budget):
        expected = plain_generation(edited, request.context, new_tokens=request.max_new_tokens)
        assert isinstance(answer, Generation)
        assert answer.text == tiny.tokenizer.decode(expected, skip_special_tokens=True)
        assert answer.tokens == len(expected)


def test_both_kinds_of_requests_run_together(tiny, gates):
    """A list that mixes both kinds of requests is answered in its order."""
    requests = [loglikelihood_requests()[0], generation_requests()[0], loglikelihood_requests()[1]]
    index = np.array([0, 1, 2])
    together = Engine(tiny).run(requests, gates, index)
    alone = [
        Engine(tiny).run([request], gates, index[[position]])[0]
        for position, request in enumerate(requests)
    ]
    assert [type(answer) for answer in together] == [LogLikelihood, Generation, LogLikelihood]
    for in_batch, by_itself in zip(together, alone, strict=True):
        if isinstance(in_batch, LogLikelihood):
            assert in_batch.value == pytest.approx(by_itself.value, abs=1e-5)
        else:
            assert in_batch == by_itself


def test_choices_with_one_context_are_read_once(tiny, gates):
    """One-token choices after one context cost one pass and equal separate passes."""
    context = prompts(1)[0]
    requests = [Request("loglikelihood", context, (token,)) for token in (5, 6, 7, 8)]
    engine = Engine(tiny)
    answers = engine.run(requests, gates, np.zeros(4, dtype=int))
    assert engine.tokens == len(context)
    for request, answer in zip(requests, answers, strict=True):
        alone = Engine(tiny).run([request], gates, np.zeros(1, dtype=int))[0]
        assert answer.value == pytest.approx(alone.value, abs=1e-6)


def test_memory_shortage_halves_the_batch_and_loses_nothing(tiny, gates, monkeypatch):
    """Batches above a limit fail, and their rows run again in smaller batches, each once."""
    forward, rows_seen = GatedModel.forward, []

    def short_of_memory(self, tokens, *args, **kwargs):
        if tokens.numel() > 60:
            raise torch.OutOfMemoryError("no memory")
        rows_seen.append(len(tokens))
        return forward(self, tokens, *args, **kwargs)

    requests, index = crossed(loglikelihood_requests())
    expected = Engine(tiny, EngineOptions(token_budget=1)).run(requests, gates, index)
    monkeypatch.setattr(GatedModel, "forward", short_of_memory)
    engine = Engine(tiny, EngineOptions(token_budget=10_000))
    answers = engine.run(requests, gates, index)
    assert [a.value for a in answers] == pytest.approx([e.value for e in expected], abs=1e-5)
    assert sum(rows_seen) == len(requests)
    assert engine.token_budget < 200


def test_row_too_large_for_the_memory_raises(tiny, gates, monkeypatch):
    """A single row that does not fit is an error, not an endless loop."""

    def no_memory(*_args, **_kwargs):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(GatedModel, "forward", no_memory)
    with pytest.raises(OutOfMemory):
        Engine(tiny).run(loglikelihood_requests()[:1], gates, np.zeros(1, dtype=int))


def test_infinite_logits_stop_the_run():
    """Infinite logits raise `BadLogits` with the request's number instead of giving scores."""
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="broken")
    model.model.lm_head.weight.data[3] = float("inf")
    gates, index = np.ones((1, 8), dtype=np.float32), np.zeros(1, dtype=int)
    for requests in (loglikelihood_requests()[:1], generation_requests()[:1]):
        with pytest.raises(BadLogits, match="NaN or infinite logits for request 0"):
            Engine(model).run(requests, gates, index)


def test_progress_counts_every_request(tiny, gates):
    """Progress never decreases, and the last report counts every request as done."""
    reports = []
    requests, index = crossed(loglikelihood_requests() + generation_requests())
    Engine(tiny, EngineOptions(token_budget=100), on_progress=reports.append).run(
        requests, gates, index
    )
    assert reports[-1].done == reports[-1].total == len(requests)
    assert [p.done for p in reports] == sorted(p.done for p in reports)
    assert reports[-1].tokens > 0


def test_tokens_without_an_embedding_are_named():
    """Prompts, answers and texts with tokens that the model lacks are refused in one line."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens(["<more>"])
    model = broca.load(tiny_llama(), tokenizer)
    message = r"token 258 '<more>' has no embedding in model .*, which has 258: .*resize"
    gates = np.ones((1, 8), dtype=np.float32)
    for request in (
        Request("loglikelihood", (5, 258), (6,)),
        Request("loglikelihood", (5, 6), (7, 258)),
        Request("generate_until", (5, 258, 6), max_new_tokens=2),
    ):
        with pytest.raises(BadInput, match=message):
            Engine(model).run([request], gates, np.zeros(1, dtype=int))
    margin = Margin((Request("loglikelihood", (5, 6), (258,)),), None)
    with pytest.raises(BadInput, match=message):
        Engine(model).differentiate([margin], gates, np.zeros(1, dtype=int))
    with pytest.raises(BadInput, match=message):
        model.generate("a <more>")
    tokens = torch.tensor([[5, 258]])
    with model.in_use(), pytest.raises(BadInput, match=message):
        model.forward(tokens, torch.ones_like(tokens), keep=1)
