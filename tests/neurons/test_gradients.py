"""Integrated gradients equal a plain loop, are complete and do not depend on the batch size."""

import numpy as np
import pytest
import torch
from models.architectures import ARCHITECTURES, make_model
from neurons.slow import slow_scores
from tiny import tiny_tokenizer

from broca.engine import Engine, EngineOptions
from broca.models import GatedModel, neuron_blocks
from broca.neurons.gradients import IntegratedGradients, ItemScores, steps_of
from broca.tasks import Request

STEPS = 5
DENSE = [kind for kind in ARCHITECTURES if kind.experts is None]
REQUESTS = [
    Request("loglikelihood", (5, 9, 30, 77, 21), (40, 8)),
    Request("loglikelihood", (11, 6, 99, 3, 55), (12, 90)),
    Request("loglikelihood", (7, 8, 9), (10,)),
    Request("loglikelihood", (64,), (33, 34)),
]


def attributed(model, *, alphas=None, budget=None, requests=REQUESTS):
    """Returns the attributions of the requests, in their order."""
    engine = Engine(model, EngineOptions(token_budget=budget))
    observations = [IntegratedGradients(gold, alphas or steps_of(STEPS), 1) for gold in requests]
    scores = ItemScores.of(IntegratedGradients.observe(engine, observations))
    assert engine.tokens == engine.observed_tokens > 0
    return [ItemScores(*parts) for parts in zip(*vars(scores).values(), strict=True)]


def slowly(model, gold, steps=STEPS):
    """Returns the scores of a plain loop, `(neurons,)`, and the changes of p by layer."""
    paths = [block.part.path for block in neuron_blocks(model.structure)]
    scores, changes = slow_scores(model.model, paths, gold.context, gold.continuation, steps=steps)
    return torch.cat(list(scores.values())).numpy(), list(changes.values())


def likely(model, context, length):
    """Returns a request for the greedy answer, as tiny models give other tokens little weight."""
    tokens = list(context)
    for _ in range(length):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([tokens]), use_cache=False).logits
        tokens.append(int(logits[0, -1].argmax()))
    return Request("loglikelihood", tuple(context), tuple(tokens[len(context) :]))


@pytest.mark.parametrize("architecture", DENSE, ids=[kind.name for kind in DENSE])
def test_scores_equal_a_plain_loop(architecture):
    """Scores agree on all dense architectures, for one and several tokens and one-token prompts."""
    plain = make_model(architecture)
    model = GatedModel.wrap(plain, tiny_tokenizer(), name=architecture.name)
    first, second = (5, 9, 30, 77, 21), (15, 19, 3, 7, 2)
    requests = [likely(plain, *of) for of in ((first, 2), (second, 2), (first, 1), ((64,), 1))]
    for request, attribution in zip(requests, attributed(model, requests=requests), strict=True):
        expected, _ = slowly(model, request)
        largest = float(np.abs(expected).max())  # next to a norm, scores reach 40
        np.testing.assert_allclose(
            attribution.scores, expected, rtol=0, atol=1e-5 * max(1.0, largest)
        )
        assert largest > 1e-4, "nothing to compare"


def test_scores_are_complete(tiny):
    """A layer's scores sum to p(w) - p(0) up to an error that falls with more steps."""
    _, changes = slowly(tiny, REQUESTS[0], 1)
    errors = []
    for steps in (4, 16, 64, 256):
        (attribution,) = attributed(tiny, alphas=steps_of(steps), requests=REQUESTS[:1])
        sums = attribution.scores.reshape(len(changes), -1).sum(1)
        errors.append(float(np.abs(sums - changes).max()))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 10
    assert attribution.residual <= errors[-1] + 1e-6


@pytest.mark.parametrize("budget", [1, 64, 100_000])
@pytest.mark.parametrize("keeps", [True, False])
def test_batches_and_kept_keys_change_nothing(tiny, budget, keeps, monkeypatch):
    """Scores are equal in every batch, and where keys cannot be kept; the model stays the same."""
    before = {name: value.clone() for name, value in tiny.model.state_dict().items()}
    expected = attributed(tiny)
    if not keeps:
        monkeypatch.setattr("broca.neurons.gradients.is_plain", lambda cache: False)
    for attribution, whole in zip(attributed(tiny, budget=budget), expected, strict=True):
        np.testing.assert_allclose(attribution.scores, whole.scores, atol=1e-6)
        assert attribution.probability == pytest.approx(whole.probability)
    assert all(torch.equal(tiny.model.state_dict()[name], value) for name, value in before.items())
    assert not any(module._forward_pre_hooks for module in tiny.model.modules())
    assert all(parameter.grad is None for parameter in tiny.model.parameters())


def test_single_step_is_gradient_times_activation(tiny):
    """With the full activation alone, the score is w dp/dw and the residual is not defined."""
    gold, met = REQUESTS[0], []
    (full,), (empty,) = (attributed(tiny, alphas=(a,), requests=[gold]) for a in (1.0, 0.0))
    assert np.isnan(full.residual)
    both_ends, _ = slowly(tiny, gold, 1)
    np.testing.assert_allclose((full.scores + empty.scores) / 2, both_ends, atol=1e-7)
    first = tiny.structure.parts[0].feed_forward.module
    with first.register_forward_pre_hook(lambda _, args: met.append(args[0])), torch.no_grad():
        tiny.model(torch.tensor([[*gold.context, *gold.continuation[:-1]]]))
    expected = met[0][0, -2:].mean(0)
    np.testing.assert_allclose(full.activations[: len(expected)], expected, atol=1e-5)
