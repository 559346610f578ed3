"""Readings, with shared prefixes and reused layers, equal rows computed one by one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from engine.shared_work import GATES, PREAMBLE, assert_same, read_by_hand, run
from tiny import tiny_gated

from broca import designs
from broca.engine import Ablation, Engine, EngineOptions, Job, donor_activations
from broca.engine.batches import Work, require_finite
from broca.engine.reader import target_log_probabilities
from broca.errors import BadLogits, OutOfMemory
from broca.models import GatedModel, gated
from broca.tasks import Margin, Request

READ = Request("loglikelihood", ())


@pytest.fixture(scope="module")
def expected():
    """Log-likelihoods of the requests in plain transformers, on weights zeroed by hand."""
    return read_by_hand(few_shot(6, "read"))


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


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ({"share_prefixes": "on", "reuse_layers": "off", "token_budget": 70}, 0.6),
        ({"share_prefixes": "on", "reuse_layers": "off", "token_budget": 300}, 0.6),
        ({"share_prefixes": "on", "reuse_layers": "off"}, 0.6),
        ({"reuse_layers": "off"}, 0.6),
        ({"reuse_layers": "on", "token_budget": 40}, 1),
        ({"reuse_layers": "on"}, 1),
        ({"share_prefixes": "on", "reuse_layers": "on"}, 1),
    ],
    ids=str,
)
def test_shared_work_changes_no_answer(tiny, expected, options, read):
    """Prefixes that are read once, and lower layers that are run once, give every row's answer."""
    requests = few_shot(6, "read")
    answers, engine = run(tiny, requests, **options)
    assert_same(answers, expected)
    alone = sum(len(request.context) + len(request.continuation) - 1 for request in requests)
    assert engine.tokens <= read * alone * 5


@pytest.mark.parametrize(("more", "share"), [((), 0), ((1, 2), 0.4)], ids=["one token", "three"])
def test_choices_after_one_context_read_it_once(tiny, more, share):
    """Choices of one token after a context cost one pass over it, longer ones their own tokens."""
    context = tuple(range(30, 80))
    requests = [Request("loglikelihood", context, (n, *more)) for n in (3, 90, 120, 200)]
    expected, plain = run(tiny, requests, share_prefixes="off", reuse_layers="off")
    answers, engine = run(tiny, requests, reuse_layers="off")
    assert_same(answers, expected)
    assert engine.tokens <= max(5 * len(context), share * plain.tokens)


@pytest.mark.parametrize(
    "work",
    [
        lambda model: run(model, few_shot(6, "read")),
        lambda model: donor_activations(model, [(3, 4), (5, 6)], Ablation("mean")),
    ],
    ids=["rows behind a prefix", "donors"],
)
def test_what_never_fits_the_memory_is_refused(tiny, monkeypatch, work):
    """A single row that does not fit ends the run in one line."""

    def short(*_, **__):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(GatedModel, "forward", short)
    with pytest.raises(OutOfMemory, match="not even one row"):
        work(tiny)


@pytest.mark.parametrize("kind", ["generate", "read"])
@pytest.mark.parametrize(
    "options", [{}, {"share_prefixes": "off"}, {"reuse_layers": "on"}], ids=str
)
def test_memory_shortage_loses_nothing(tiny, monkeypatch, kind, options):
    """A shortage of memory loses no row and shrinks the budget, whatever work is shared."""
    requests = few_shot(6, kind)
    expected, _ = run(tiny, requests)
    forward, calls = GatedModel.forward, [0]

    def sometimes_short(self, tokens, *args, **kwargs):
        calls[0] += 1
        if calls[0] in (2, 5, 9) and len(tokens) > 1:
            raise torch.OutOfMemoryError("no memory")
        return forward(self, tokens, *args, **kwargs)

    monkeypatch.setattr(GatedModel, "forward", sometimes_short)
    answers, engine = run(tiny, requests, token_budget=1000, **options)
    assert_same(answers, expected)
    assert engine.token_budget < 1000


def test_a_row_of_a_sweep_starts_where_it_differs(monkeypatch):
    """It starts at its layer's output projection, and repeats no attention; random masks do not."""
    model = tiny_gated("three", "heads+mlp+layers", layers=3)
    attention = model.model.model.layers[1].self_attn
    contexts = [(9 * n + 3, n + 5, 7, 80) for n in range(4)]
    requests = [Request("loglikelihood", context, (c,)) for context in contexts for c in (5, 6)]
    count = len(model.components)
    sweep = (~np.vstack([designs.intact(count), designs.singles(count)])).astype(np.float32)
    random = (~designs.bernoulli(10, count, sparsity=0.5, seed=0)).astype(np.float32)
    expected, _ = run(model, requests, sweep, reuse_layers="off")
    rows, forward = [], type(attention).forward

    def counted(self, hidden_states, *args, **kwargs):
        if self is attention:
            rows.append(len(hidden_states))
        return forward(self, hidden_states, *args, **kwargs)

    monkeypatch.setattr(type(attention), "forward", counted)
    assert_same(run(model, requests, sweep)[0], expected)
    below = sum(component.layer == 0 for component in model.components)
    assert sum(rows) == len(contexts) * (1 + below)  # intact rows and rows of layer 0
    rows.clear()
    run(model, requests, random)
    assert sum(rows) == len(contexts) * len(random)


@pytest.mark.parametrize("way", ["alone", "prefixes", "layers", "gradients", "generation"])
def test_only_positions_whose_logits_are_needed_pass_the_head(way, monkeypatch):
    """The head reads each target's positions once, none of a shared prefix, and no padding."""
    monkeypatch.setattr(gated, "_FEWEST", 1)
    model = tiny_gated("counted")
    requests = few_shot(4, "read")
    if way == "generation":
        requests = [replace(r, kind="generate_until", max_new_tokens=1) for r in requests]
    index = np.repeat(np.arange(len(GATES)), len(requests))
    rows = tuple((request,) for request in requests) * len(GATES)
    margins = tuple(Margin(row, None) for row in rows) if way == "gradients" else ()
    options = EngineOptions(
        share_prefixes="off" if way == "alone" else "on",
        reuse_layers="on" if way == "layers" else "off",
    )
    engine = Engine(model, options)
    job = Job(0, GATES, index, np.zeros_like(index), () if margins else rows, margins)
    engine.answer(job)  # with the proofs of what rows share
    passed = []
    model.model.lm_head.register_forward_hook(lambda *call: passed.append(call[-1][..., 0].numel()))
    engine.answer(job)
    per_request = [1 if way == "generation" else len(r.continuation) for r in requests]
    assert sum(passed) == len(GATES) * sum(per_request)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_targets_are_read_from_the_last_positions(dtype):
    """Log-probabilities equal a log-softmax taken position by position in double precision."""
    work = [
        Work(0, 0, (1, 2, 3, 4), READ, [(7, (4, 0)), (2, (3,))]),
        Work(1, 0, (5, 6), READ, [(5, (2, 1, 0))]),
    ]
    logits = torch.randn(2, 3, 6, generator=torch.manual_seed(0)).to(dtype)
    expected = torch.log_softmax(logits.double(), dim=-1)
    last = torch.cat([logits[0, -2:], logits[1]])  # each row's own positions
    values, greedy = target_log_probabilities(work, last, [2, 5])
    for target, (row, tokens) in enumerate([(0, (4, 0)), (0, (3,)), (1, (2, 1, 0))]):
        padding = 3 - len(tokens)
        assert not values[target, :padding].any()
        assert greedy[target, :padding].all()
        at = range(padding, 3)
        torch.testing.assert_close(
            values[target, padding:].double(), expected[row, at, tokens], atol=1e-5, rtol=0
        )
        best = logits[row, padding:].argmax(-1)
        assert greedy[target, padding:].tolist() == (best == torch.tensor(tokens)).tolist()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("position", [(1, 0, 0), (1, 2, 4)])
def test_one_bad_value_is_found_and_its_request_named(value, position):
    """One NaN or infinite logit at any position raises an error that names the row's request."""
    logits = torch.full((3, 3, 5), 1e30)
    require_finite(logits, [10, 20, 30])
    logits[position] = value
    with pytest.raises(BadLogits, match="request 20") as error:
        require_finite(logits, [10, 20, 30])
    assert error.value.row == 20
