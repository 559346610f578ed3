"""Margins and their gradients with respect to the gates."""

import numpy as np
import pytest
import torch
from engine.shared_work import GATES, zeroed
from independent import plain_loglikelihood
from tiny import tiny_llama, tiny_tokenizer

from broca.engine import Engine, EngineOptions, Job
from broca.engine.batches import Work
from broca.engine.reader import target_log_probabilities
from broca.errors import BadLogits
from broca.models import GatedModel
from broca.tasks import Margin, Request

CHOICE = Margin(
    tuple(Request("loglikelihood", (30, 31, 32), c) for c in ((5,), (6,), (7, 8), (9, 10, 11))), 2
)
ANSWER = Margin((Request("loglikelihood", (40, 41), (50, 51, 52)),), None)
ROWS = [CHOICE, ANSWER, ANSWER.paired(), CHOICE]


def differentiated(engine, margins, gates, index):
    """Returns margins and their gradients."""
    answers = engine.answer(Job(0, gates, index, np.zeros_like(index), margins=tuple(margins)))
    return answers.values, answers.gradients


def gates_of(model):
    """Returns gates of four masks: intact, every third closed, and two between 0 and 1."""
    gates = np.ones((4, len(model.components)), dtype=np.float32)
    gates[1, ::3] = 0
    gates[2:] = np.random.default_rng(0).uniform(0.2, 0.9, gates[2:].shape)
    return gates


@pytest.mark.parametrize("budget", [1, 100_000])
def test_gradients_equal_finite_differences(budget):
    """Gradients equal central differences of the margin, gate by gate, for both kinds of margin.

    The model is in double precision, with every kind of gate.
    """
    plain, kinds = tiny_llama().double(), "heads+mlp+layers"
    double = GatedModel.wrap(plain, tiny_tokenizer(), name="double", components=kinds)
    gates, index = gates_of(double), np.arange(4)
    engine = Engine(double, EngineOptions(token_budget=budget))
    _, gradients = differentiated(engine, ROWS, gates, index)
    step = 1e-3
    for column in range(len(double.components)):
        sides = []
        for sign in (1, -1):
            moved = gates.copy()
            moved[:, column] += sign * step
            sides.append((differentiated(engine, ROWS, moved, index)[0], moved[:, column]))
        (up, high), (down, low) = sides
        np.testing.assert_allclose(
            gradients[:, column], (up - down) / (high - low).astype(float), atol=2e-4, rtol=2e-3
        )


@pytest.mark.parametrize("mask", range(len(GATES)))
def test_margins_equal_plain_transformers(tiny, mask):
    """A choice's margin is log p(gold) - log sum of the others; an answer's, its mean log p.

    Tokens of a paired answer are compared with the likeliest other token alone.
    """
    assert (CHOICE.paired(), ANSWER.paired().requests[0].paired) == (CHOICE, True)
    for margin in (CHOICE, ANSWER, ANSWER.paired()):
        values, plain = [], zeroed(mask)
        for request in margin.requests:
            asked = request.context, request.continuation
            values.append(plain_loglikelihood(plain, *asked, paired=request.paired)[0])
        expected = values[0] / 3
        if margin is CHOICE:
            expected = values[2] - np.logaddexp.reduce(np.delete(values, 2))
        (value,), _ = differentiated(Engine(tiny), [margin], GATES, np.array([mask]))
        assert value == pytest.approx(expected, abs=1e-4)
        answers = Engine(tiny).run(margin.requests, GATES, np.full(len(margin.requests), mask))
        assert margin.of_answers(answers) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("token", [3, 7])
def test_a_paired_token_has_a_slope_beside_its_equal(token):
    """Of two equally likely tokens, as in half precision, each is the rival of the other."""
    logits = torch.zeros(1, 5000)
    logits[0, [3, 7]] = 2
    request = Request("loglikelihood", (1,), (token,), paired=True)
    work = [Work(0, 0, (1,), request, [(0, (token,))])]
    value, _ = target_log_probabilities(work, logits.requires_grad_(), [0])
    (slope,) = torch.autograd.grad(value.sum(), logits)
    assert slope[0, [token, 10 - token]].tolist() == [0.5, -0.5]


def test_a_row_without_a_finite_margin_is_named(tiny):
    """The error names the row of the job, not its place in a batch of sorted rows."""
    gates = np.ones((3, 8), np.float32)
    gates[1, 0] = np.nan
    with pytest.raises(BadLogits) as error:
        differentiated(Engine(tiny), [CHOICE, ANSWER, CHOICE], gates, np.arange(3))
    assert error.value.row == 1


@pytest.mark.parametrize("most", [6, 0, None])
def test_batches_that_fail_run_again_in_parts(tiny, monkeypatch, most):
    """Batches that do not fit run in parts, and a row that does not keeps inputs of layers alone.

    Rows whose gradients fail because of padding (None) run again by their lengths. The answers are
    the same, and no weight has a gradient.
    """
    gates, index, forward = gates_of(tiny), np.arange(4), GatedModel.forward
    expected = differentiated(Engine(tiny), ROWS, gates, index)

    def failing(self, tokens, attention, **kwargs):
        if most is None:
            logits, cache = forward(self, tokens, attention, **kwargs)
            return logits if attention.all() else logits + (0 * logits).sqrt(), cache
        if len(tokens) > most and "forward" not in vars(self.model.model.layers[0]):
            raise torch.OutOfMemoryError("no memory")
        return forward(self, tokens, attention, **kwargs)

    assert tiny.resumption.possible  # tested with enough memory
    monkeypatch.setattr(GatedModel, "forward", failing)
    margins, gradients = differentiated(Engine(tiny), ROWS, gates, index)
    np.testing.assert_allclose(margins, expected[0], atol=1e-5)
    np.testing.assert_allclose(gradients, expected[1], atol=1e-4, rtol=1e-3)
    assert all(parameter.grad is None for parameter in tiny.model.parameters())
