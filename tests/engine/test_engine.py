"""The engine against plain transformers on weights zeroed by hand."""

import numpy as np
import pytest
import torch
from engine.shared_work import run, same
from independent import plain_loglikelihood, zeroed_by_hand

import broca
from broca.engine import Ablation, Engine, EngineOptions, Job, donor_activations
from broca.errors import BadInput, BadLogits
from broca.models import GatedModel
from broca.tasks import LogLikelihood, Request
from broca.tasks.items import Margin
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


REQUESTS = [
    Request("loglikelihood", context, [(5,), (9, 200), (7, 7, 7), (2, 3, 4, 5)][number % 4])
    for number, context in enumerate(prompts(9))
]
GENERATIONS = [
    Request("generate_until", context, max_new_tokens=4 + number)
    for number, context in enumerate(prompts(9, seed=1))
]


@pytest.mark.parametrize("budget", [1, 40, 100_000])
def test_loglikelihoods_equal_zeroed_weights(tiny, bare, gates, budget):
    """Log-likelihoods and greedy flags equal those of zeroed weights, whatever the batch size."""
    answers, _ = run(tiny, REQUESTS, gates, token_budget=budget)
    for number, answer in enumerate(answers):
        mask, request = number // len(REQUESTS), REQUESTS[number % len(REQUESTS)]
        edited = zeroed_by_hand(bare, MASKS[mask], head_dim=HEAD_DIM)
        value, greedy = plain_loglikelihood(edited, request.context, request.continuation)
        assert isinstance(answer, LogLikelihood)
        assert answer.value == pytest.approx(value, abs=1e-5 * max(1, abs(value)))
        assert answer.greedy == greedy


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


def test_infinite_logits_stop_the_run():
    """Infinite logits raise `BadLogits` with the request's number instead of giving scores."""
    model = GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="broken")
    model.model.lm_head.weight.data[3] = float("inf")
    gates, index = np.ones((1, 8), dtype=np.float32), np.zeros(1, dtype=int)
    for requests in (REQUESTS[:1], GENERATIONS[:1]):
        with pytest.raises(BadLogits, match="NaN or infinite logits for request 0"):
            Engine(model).run(requests, gates, index)


def test_progress_counts_every_request(tiny, gates):
    """Progress never decreases, and the last report counts every request as done."""
    reports = []
    requests = [*REQUESTS, *GENERATIONS]
    Engine(tiny, EngineOptions(token_budget=100), on_progress=reports.append).run(
        requests, gates, np.arange(len(requests)) % len(gates)
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
    zero = np.zeros(1, dtype=int)
    with pytest.raises(BadInput, match=message):
        Engine(model).answer(Job(0, gates, zero, zero, margins=(margin,)))
    with pytest.raises(BadInput, match=message):
        model.generate("a <more>")
    tokens = torch.tensor([[5, 258]])
    with model.in_use(), pytest.raises(BadInput, match=message):
        model.forward(tokens, torch.ones_like(tokens), keep=1)


def work(count=90, masks=6, components=8, *, seed=0, singles=False):
    """Returns log-likelihoods and generations of several lengths under random or single masks."""
    rng = np.random.default_rng(seed)
    gates = (rng.random((masks, components)) > 0.3).astype(np.float32)
    if singles:
        gates = 1 - np.eye(components, dtype=np.float32)[-masks:]
    preamble = tuple(rng.integers(2, 258, 12).tolist())
    requests = []
    for number in range(count):
        question = tuple(rng.integers(2, 258, 3 + number % 7).tolist())
        context = (*preamble, *question) if number % 2 else question
        if number % 3:
            requests.append(Request("loglikelihood", context, question[:2]))
        else:
            requests.append(Request("generate_until", context, (), ("q",), 6))
    return requests, gates, rng.integers(0, masks, count)


@pytest.mark.parametrize("lanes", [2, 3])
@pytest.mark.parametrize("singles", [False, True])
def test_lanes_answer_as_one(tiny, lanes, singles):
    """Several lanes give the answers of one lane, in the order of the requests."""
    requests, gates, index = work(singles=singles)
    single = Engine(tiny, EngineOptions(lanes=1)).run(requests, gates, index)
    engine = Engine(tiny, EngineOptions(lanes=lanes, token_budget=200))
    several = engine.run(requests, gates, index)
    assert len(engine._lanes) == lanes
    same(several, single)


def test_donors_reach_the_modules_of_copies(tiny):
    """Mean ablation in two lanes equals mean ablation in one and differs from zero ablation."""
    requests, gates, index = work(seed=1)
    donors = donor_activations(
        tiny, [request.context for request in requests[:5]], Ablation("mean")
    )
    one, two = (
        Engine(tiny, EngineOptions(lanes=lanes), donors=donors).run(requests, gates, index)
        for lanes in (1, 2)
    )
    zero = Engine(tiny, EngineOptions(lanes=1)).run(requests, gates, index)
    same(two, one)
    assert zero != one


def test_an_error_in_a_lane_reaches_the_caller_and_threads_are_as_before(tiny, monkeypatch):
    """An error in a copy's lane is raised to the caller, and torch's thread count is restored."""
    requests, gates, index = work()
    engine = Engine(tiny, EngineOptions(lanes=2))
    engine.run(requests, gates, index)
    before = torch.get_num_threads()
    forward = GatedModel.forward

    def fails(self, *arguments, **options):
        if self is not tiny:
            raise RuntimeError("a lane broke down")
        return forward(self, *arguments, **options)

    monkeypatch.setattr(GatedModel, "forward", fails)
    with pytest.raises(RuntimeError, match="a lane broke down"):
        engine.run(requests, gates, index)
    assert torch.get_num_threads() == before
    for module in (m for lane in engine._lanes for m in lane.model.model.modules()):
        assert not module._forward_pre_hooks
