"""Margins and probabilities, against softmax and finite differences."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

from broca.errors import BadInput
from broca.tasks import LogLikelihood, Margin, Request, TaskOptions
from broca.tasks.benchmark import reference_of
from broca.tasks.items import STRETCH


def requests(*lengths):
    """Returns log-likelihood requests whose continuations have the given lengths."""
    return tuple(Request("loglikelihood", (1,), tuple(range(length))) for length in lengths)


def answers(values):
    """Returns answers with the given log-likelihoods."""
    return [LogLikelihood(value, False) for value in values]


@pytest.mark.parametrize("gold", [1, (1,), (0, 3)])
def test_the_probability_of_choices_is_that_of_a_softmax(gold):
    """The right choices have their softmax probability, whatever constant the values share."""
    values = np.array([-3.0, -1.5, -2.0, -7.0])
    margin = Margin(requests(1, 2, 3, 1), gold)
    expected = softmax(values)[list(gold) if isinstance(gold, tuple) else [gold]].sum()
    for shift in (0.0, -400.0):
        value = margin.of_answers(answers(values + shift))
        assert margin.probability(value) == pytest.approx(expected)
        assert value == pytest.approx(np.log(expected / (1 - expected)))


@pytest.mark.parametrize("lengths", [(3,), (2, 4), (STRETCH + 12,)])
def test_a_single_answer_is_the_mean_over_its_tokens(lengths):
    """A margin is the mean per token; the probability is that of at most eight mean tokens."""
    margin = Margin(requests(*lengths), None)
    tokens = sum(lengths)
    value = margin.of_answers(answers([-0.1 * length for length in lengths]))
    assert value == pytest.approx(-0.1)
    assert margin.probability(value) == pytest.approx(np.exp(-0.1 * min(tokens, STRETCH)))


@pytest.mark.parametrize(
    "margin", [Margin(requests(1, 2, 3), (0, 2)), Margin(requests(2, 3), None)]
)
def test_slopes_and_gradients_are_derivatives(margin):
    """A slope is a central difference; the margin of tensors is that of answers, with gradients."""
    for value in (-2.0, -0.3, 0.0):
        low, high = (margin.probability(value + step) for step in (-1e-6, 1e-6))
        assert margin.slope(value) == pytest.approx((high - low) / 2e-6, rel=1e-5)
    values = torch.tensor([-1.0, -2.5, -0.5][: len(margin.requests)], dtype=torch.float64)
    values.requires_grad_()
    value = margin.of(values)
    assert value.item() == pytest.approx(margin.of_answers(answers(values.tolist())))
    assert torch.autograd.gradcheck(margin.of, (values,))


def test_the_function_is_read_from_its_file(tmp_path):
    """`FILE.py:FUNCTION` is loaded; a missing file or function is refused with the cause."""
    (tmp_path / "answers.py").write_text("def answer(document):\n    return document['a'] * 2\n")
    (tmp_path / "bad.py").write_text("def f(:")
    function = reference_of(TaskOptions(reference=f"{tmp_path}/answers.py:answer"))
    assert function({"a": "ab"}) == "abab"
    for name, message in (
        ("no.py:f", "is not a Python file"),
        ("answers.py:g", "has no function 'g'"),
        ("bad.py:f", "could not be run: SyntaxError"),
    ):
        with pytest.raises(BadInput, match=message):
            reference_of(TaskOptions(reference=f"{tmp_path}/{name}"))
