"""Training touches the neurons' parameters and nothing else, and puts everything back."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from broca.errors import BadInput
from broca.neurons import TuningOptions, tuned, zeroed

COLUMNS = np.array([3, 10, 64, 127])


def snapshot(neurons):
    """Copies of all weights."""
    return {
        name: value.detach().clone() for name, value in neurons.model.model.state_dict().items()
    }


def belongs(name, shape):
    """Which numbers of a weight are the chosen neurons', by hand: each layer has 64."""
    own = torch.zeros(shape, dtype=torch.bool)
    for layer, neurons_ in ((0, [3, 10]), (1, [0, 63])):
        if f"layers.{layer}.mlp.down_proj" in name:
            own[:, neurons_] = True
        elif f"layers.{layer}.mlp.gate_proj" in name or f"layers.{layer}.mlp.up_proj" in name:
            own[neurons_] = True
    return own


def test_only_the_neurons_parameters_change_to_the_bit(neurons, ask):
    """All others are equal bit for bit while tuned; everything is afterwards."""
    before = snapshot(neurons)
    trainable = [weight.requires_grad for weight in neurons.model.model.parameters()]
    options = TuningOptions(lr=0.01, epochs=3, patience=3)
    with tuned(neurons, COLUMNS, ask(8), ask(8), options=options) as done:
        assert done.best > 0
        assert done.losses[done.best] < done.losses[0]
        assert done.parameters == 4 * 3 * 32
        for name, value in snapshot(neurons).items():
            own = belongs(name, value.shape)
            assert torch.equal(value[~own], before[name][~own]), name
            if own.any():
                assert (value[own] != before[name][own]).float().mean() > 0.9
    after = snapshot(neurons)
    assert all(torch.equal(after[name], before[name]) for name in before)
    weights = list(neurons.model.model.parameters())
    assert [weight.requires_grad for weight in weights] == trainable
    assert all(weight.grad is None for weight in weights)


def test_training_equals_adam_with_masked_gradients(neurons, ask):
    """One step of plain Adam on the whole model, gradients masked by hand, gives the same."""
    questions = ask(4)
    plain = copy.deepcopy(neurons.model.model).requires_grad_(True)
    options = TuningOptions(lr=0.01, epochs=1, batch=4)
    with tuned(neurons, COLUMNS, questions, questions, options=options) as done:
        ours = snapshot(neurons)
    assert done.best == 1
    total, count = 0.0, 0
    for question in questions.questions:
        gold = question.gold
        tokens = torch.tensor([[*gold.context, *gold.continuation]])
        logits = plain(input_ids=tokens, use_cache=False).logits[0]
        predicted = torch.log_softmax(logits[len(gold.context) - 1 : -1], -1)
        total = total - predicted[range(len(gold.continuation)), gold.continuation].sum()
        count += len(gold.continuation)
    (total / count).backward()
    for name, parameter in plain.named_parameters():
        parameter.grad *= belongs(name, parameter.shape)
    torch.optim.Adam(plain.parameters(), lr=0.01).step()
    for name, value in plain.state_dict().items():
        own = belongs(name, value.shape)
        # where a gradient is next to nothing Adam's first step turns noise into its sign
        torch.testing.assert_close(ours[name], value, atol=2e-5, rtol=0) if not own.any() else None
        if own.any():
            close = (ours[name][own] - value[own]).abs() < 2e-5
            assert close.float().mean() > 0.98, name


def test_weights_that_do_not_help_are_not_kept(neurons, ask):
    """Validation on what the model already says can only get worse: training stops early."""
    before = snapshot(neurons)
    own = []
    for question in ask(4).questions:
        with torch.no_grad():
            logits = neurons.model.model(torch.tensor([question.gold.context])).logits[0, -1]
        own.append(
            replace(question, gold=replace(question.gold, continuation=(int(logits.argmax()),)))
        )
    validation = replace(ask(4), questions=tuple(own))
    options = TuningOptions(lr=3.0, epochs=20, patience=2)
    with tuned(neurons, COLUMNS, ask(4), validation, options=options) as done:
        assert done.best == 0
        assert len(done.losses) == 3
        assert all(torch.equal(value, before[n]) for n, value in snapshot(neurons).items())


def test_weights_are_put_back_after_an_error(neurons, ask):
    """Also when what is done with the tuned model fails."""
    before = snapshot(neurons)
    with pytest.raises(RuntimeError, match="on purpose"), tuned(
        neurons, COLUMNS, ask(4), ask(4), options=TuningOptions(lr=0.01, epochs=1)
    ):  # fmt: skip
        raise RuntimeError("on purpose")
    assert all(torch.equal(value, before[name]) for name, value in snapshot(neurons).items())


def test_zeroed_neurons_are_zero_and_back(neurons):
    """All their parameters, and no others."""
    before = snapshot(neurons)
    with zeroed(neurons, COLUMNS):
        for name, value in snapshot(neurons).items():
            own = belongs(name, value.shape)
            assert not value[own].any()
            assert torch.equal(value[~own], before[name][~own])
    assert all(torch.equal(value, before[name]) for name, value in snapshot(neurons).items())


def test_nothing_to_train_is_refused(neurons, ask):
    """No neurons, or no items."""
    with pytest.raises(BadInput, match="no neuron"), tuned(
        neurons, COLUMNS[:0], ask(2), ask(2), options=TuningOptions()
    ):  # fmt: skip
        pass


@pytest.mark.parametrize("wrong", [{"lr": 0}, {"epochs": 0}, {"batch": 0}, {"patience": 0}])
def test_wrong_options_are_refused(wrong):
    """Each by its name."""
    with pytest.raises(BadInput, match=next(iter(wrong))):
        TuningOptions(**wrong)
