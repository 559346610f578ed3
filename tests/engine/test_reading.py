"""Reading: layers below the first ablated layer are computed once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from engine.shared_work import run, same

from broca import designs
from broca.engine.reading import scored, target_log_probabilities
from broca.engine.work import Reading
from broca.errors import BadLogits
from broca.models import GatedModel
from broca.tasks import Request
from broca.testing import tiny_llama, tiny_tokenizer


def test_planner_reuses_layers_in_a_sweep(monkeypatch):
    """A sweep of single heads resumes at each row's layer; random masks resume nowhere."""
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
    """A row of a sweep starts at its layer's output projection and repeats no attention."""
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
    below = sum(component.layer == 0 for component in model.components)
    assert sum(rows) == len(requests) * (1 + below)  # intact rows and rows of layer 0


def _counting(forward, module, rows):
    """Wraps a forward pass so that it records how many rows one module gets."""

    def counted(self, hidden_states, *args, **kwargs):
        if self is module:
            rows.append(len(hidden_states))
        return forward(self, hidden_states, *args, **kwargs)

    return counted


def work():
    """Returns two sequences: one with two continuations, the other with one."""
    return [
        Reading(0, 0, (1, 2, 3, 4), [(7, (4, 0)), (2, (3,))]),
        Reading(1, 0, (5, 6), [(5, (2, 1, 0))]),
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_targets_are_read_from_the_last_positions(dtype):
    """Log-probabilities equal a log-softmax taken position by position in double precision."""
    logits = torch.randn(2, 3, 6, generator=torch.manual_seed(0)).to(dtype)
    values, greedy, present = target_log_probabilities(work(), logits)
    expected = torch.log_softmax(logits.double(), dim=-1)
    targets = [(0, (4, 0)), (0, (3,)), (1, (2, 1, 0))]
    for target, (row, tokens) in enumerate(targets):
        padding = 3 - len(tokens)
        assert present[target].tolist() == [0] * padding + [1] * len(tokens)
        assert values[target, :padding].tolist() == [0.0] * padding
        for position, token in zip(range(padding, 3), tokens, strict=True):
            assert values[target, position].item() == pytest.approx(
                expected[row, position, token].item(), abs=1e-5
            )
            best = int(logits[row, position].argmax())
            assert bool(greedy[target, position]) == (best == token)
        assert bool(greedy[target, :padding].all())


def test_scores_keep_the_positions_of_their_requests():
    """A score is the sum over the continuation; it is greedy only if every token is the argmax."""
    logits = torch.zeros(2, 3, 6)
    for position, token in enumerate((2, 1, 0)):
        logits[1, position, token] = 1.0
    answers = dict(scored(work(), logits))
    assert set(answers) == {7, 2, 5}
    assert answers[7].value == pytest.approx(2 * np.log(1 / 6))
    assert answers[5].value == pytest.approx(3 * np.log(np.e / (np.e + 5)))
    assert (answers[5].greedy, answers[2].greedy) == (True, False)


def test_infinite_logits_name_the_request():
    """Infinite logits raise an error that names the first request of their row."""
    logits = torch.zeros(2, 3, 6)
    logits[1, 0, 0] = float("inf")
    with pytest.raises(BadLogits, match="request 5"):
        scored(work(), logits)
