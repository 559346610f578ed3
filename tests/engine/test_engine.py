"""The engine against plain transformers on weights zeroed by hand."""

import numpy as np
import pytest
import torch
from engine.shared_work import GATES, assert_same, read_by_hand, run
from tiny import tiny_llama, tiny_tokenizer

import broca
from broca.engine import Ablation, Engine, EngineOptions, Job, donor_activations
from broca.errors import BadInput, BadLogits
from broca.tasks import Margin, Request

RNG = np.random.default_rng(0)
REQUESTS = [
    Request("loglikelihood", tuple(RNG.integers(2, 258, length).tolist()), choice)
    for length in (1, 6, 17, 29)
    for choice in ((5,), (9, 200), (7, 7, 7), (2, 3, 4, 5))
]


@pytest.mark.parametrize("budget", [1, 40, 100_000])
def test_loglikelihoods_equal_zeroed_weights(tiny, budget):
    """Log-likelihoods and greedy flags equal those of zeroed weights, whatever the batch size."""
    answers, _ = run(tiny, REQUESTS, token_budget=budget)
    assert_same(answers, read_by_hand(REQUESTS))


@pytest.mark.parametrize("kind", ["loglikelihood", "generate_until"])
def test_infinite_logits_stop_the_run(kind):
    """Infinite logits raise `BadLogits` with the request's number instead of giving scores."""
    model = broca.GatedModel.wrap(tiny_llama(), tiny_tokenizer(), name="broken")
    model.model.lm_head.weight.data[3] = float("inf")
    request = Request(kind, (5, 6), (7,) if kind == "loglikelihood" else (), max_new_tokens=2)
    with pytest.raises(BadLogits, match="NaN or infinite logits for request 0"):
        Engine(model).run([request], GATES[:1], np.zeros(1, dtype=int))


def test_progress_counts_every_request(tiny):
    """Progress never decreases, and the last report counts every request as done."""
    reports = []
    Engine(tiny, EngineOptions(token_budget=100), on_progress=reports.append).run(*work())
    done = [report.done for report in reports]
    assert done == sorted(done)
    assert done[-1] == reports[-1].total == 90
    assert reports[-1].tokens > 0


def test_tokens_without_an_embedding_are_named():
    """Prompts, answers and texts with tokens that the model lacks are refused in one line."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens(["<more>"])
    model = broca.load(tiny_llama(), tokenizer)
    message = r"token 258 '<more>' has no embedding in model .*, which has 258: .*resize"
    zero, outside = np.zeros(1, dtype=int), Request("loglikelihood", (5, 6), (258,))
    scored = Request("loglikelihood", (5, 258), (6,))
    generated = Request("generate_until", (5, 258, 6), max_new_tokens=2)
    for request in (scored, generated, outside):
        with pytest.raises(BadInput, match=message):
            Engine(model).run([request], GATES[:1], zero)
    job = Job(0, GATES[:1], zero, zero, margins=(Margin((outside,), None),))
    with pytest.raises(BadInput, match=message):
        Engine(model).answer(job)
    with pytest.raises(BadInput, match=message):
        model.generate("a <more>")
    tokens = torch.tensor([[5, 258]])
    with model.in_use(), pytest.raises(BadInput, match=message):
        model.forward(tokens, torch.ones_like(tokens), keep=1)


def work(count=90, masks=6, *, seed=0, singles=False):
    """Returns log-likelihoods and generations of several lengths under random or single masks."""
    rng = np.random.default_rng(seed)
    gates = (rng.random((masks, 8)) > 0.3).astype(np.float32)
    if singles:
        gates = 1 - np.eye(8, dtype=np.float32)[-masks:]
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
@pytest.mark.parametrize("case", ["random masks", "single masks", "means"])
def test_lanes_answer_as_one(tiny, lanes, case):
    """Several lanes give the answers of one lane, in the order of the requests, also for means."""
    requests, gates, index = work(singles=case == "single masks")
    contexts = [request.context for request in requests[:5]]
    donors = donor_activations(tiny, contexts, Ablation("mean")) if case == "means" else {}
    single = Engine(tiny, EngineOptions(lanes=1), donors=donors).run(requests, gates, index)
    engine = Engine(tiny, EngineOptions(lanes=lanes, token_budget=200), donors=donors)
    assert_same(engine.run(requests, gates, index), single)
    assert len(engine._lanes) == lanes


def test_an_error_in_a_lane_reaches_the_caller_and_threads_are_as_before(tiny, monkeypatch):
    """An error in a copy's lane is raised to the caller, and torch's thread count is restored."""
    requests, gates, index = work()
    engine = Engine(tiny, EngineOptions(lanes=2))
    before, forward = torch.get_num_threads(), broca.GatedModel.forward

    def fails(self, *arguments, **options):
        if self is not tiny:
            raise RuntimeError("a lane broke down")
        return forward(self, *arguments, **options)

    monkeypatch.setattr(broca.GatedModel, "forward", fails)
    with pytest.raises(RuntimeError, match="a lane broke down"):
        engine.run(requests, gates, index)
    assert torch.get_num_threads() == before
    for module in (m for lane in engine._lanes for m in lane.model.model.modules()):
        assert not module._forward_pre_hooks
