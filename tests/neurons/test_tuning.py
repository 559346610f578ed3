"""Training changes the selected neurons' parameters alone and restores them afterwards."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.methods import EMPTY
from broca.neurons.tuning import NeuronDelta, Training, changed_parts, trained, zeros
from broca.options import TrainingOptions
from broca.runs.progress import Stages, silent

COLUMNS = np.array([3, 10, 64, 127])
NOTHING = NeuronDelta(())


def train(
    neurons, columns, items, validation=None, *, folder=None, seed=0, base=NOTHING, **options
):
    """Trains neurons without telling the progress."""
    options = TrainingOptions(**{"lr": 0.01, **options})
    training = Training(columns, items, validation or items, options, seed, base)
    return trained(neurons, training, folder, Stages(silent))


def snapshot(neurons):
    """Returns copies of all weights."""
    return copy.deepcopy(neurons.model.model.state_dict())


def belongs(name, shape):
    """Returns which entries of a weight belong to `COLUMNS`, by hand: each layer has 64 neurons."""
    chosen = torch.zeros(shape, dtype=torch.bool)
    for layer, neurons_ in ((0, [3, 10]), (1, [0, 63])):
        if f"layers.{layer}.mlp.down_proj" in name:
            chosen[:, neurons_] = True
        elif f"layers.{layer}.mlp.gate_proj" in name or f"layers.{layer}.mlp.up_proj" in name:
            chosen[neurons_] = True
    return chosen


@pytest.fixture(autouse=True)
def before(neurons):
    """The weights before a test, which must be those after it, without gradients."""
    weights = list(neurons.model.model.parameters())
    intact, trainable = snapshot(neurons), [weight.requires_grad for weight in weights]
    yield intact
    assert same(neurons, intact)
    assert [weight.requires_grad for weight in weights] == trainable
    assert all(weight.grad is None for weight in weights)


def same(neurons, weights):
    """Whether the model has these weights, bit for bit."""
    return all(torch.equal(value, weights[name]) for name, value in snapshot(neurons).items())


@pytest.fixture
def golds(ask):
    """Returns a function that gives the gold answers of `count` examples."""

    def make(count):
        run = ask(letters(count))
        return run.golds(run.places("letters"))

    return make


def test_weights_are_put_back_after_an_error(neurons, golds, before, monkeypatch):
    """Weights are restored when training fails and when work under a delta fails."""
    delta = zeros(neurons, COLUMNS)
    monkeypatch.setattr(torch.optim.Adam, "step", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(neurons, COLUMNS, golds(4), base=delta)
    assert same(neurons, before)
    with pytest.raises(ZeroDivisionError), delta.applied(neurons.model):
        raise ZeroDivisionError


def test_training_equals_adam_with_masked_gradients(neurons, golds, before):
    """Training equals a step of plain Adam on the whole model with gradients masked by hand.

    All other parameters stay what they were to the bit.
    """
    answers = golds(4)
    plain = copy.deepcopy(neurons.model.model).requires_grad_(True)
    done = train(neurons, COLUMNS, answers, epochs=1, batch=4)
    assert (done.best, done.parameters) == (1, 4 * 3 * 32)
    assert done.losses[1] < done.losses[0]
    assert same(neurons, before)
    with done.delta.applied(neurons.model):
        tuned = snapshot(neurons)
    total, count = 0.0, 0
    for gold in answers:
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
        chosen = belongs(name, value.shape)
        assert torch.equal(tuned[name][~chosen], before[name][~chosen]), name
        if chosen.any():
            # where a gradient is almost zero, Adam's first step turns noise into its sign
            close = (tuned[name][chosen] - value[chosen]).abs() < 2e-5
            assert close.float().mean() > 0.98, name
            assert (tuned[name][chosen] != before[name][chosen]).float().mean() > 0.9


def test_weights_that_do_not_help_are_not_kept(neurons, golds, before):
    """Training stops early and keeps the initial weights if the validation loss only rises."""
    likely = []
    for gold in golds(4):
        with torch.no_grad():
            logits = neurons.model.model(torch.tensor([gold.context])).logits[0, -1]
        likely.append(replace(gold, continuation=(int(logits.argmax()),)))
    done = train(neurons, COLUMNS, golds(4), likely, lr=3.0, epochs=20, patience=2)
    assert (done.best, len(done.losses)) == (0, 3)
    with done.delta.applied(neurons.model):
        assert same(neurons, before)


def test_zeroed_neurons_stay_zero_while_others_are_trained(neurons, golds, before):
    """Training under zeroed neurons changes the others alone."""
    zeroed = zeros(neurons, COLUMNS)
    with zeroed.applied(neurons.model):
        for name, value in snapshot(neurons).items():
            chosen = belongs(name, value.shape)
            assert not value[chosen].any()
            assert torch.equal(value[~chosen], before[name][~chosen])
    others = np.setdiff1d(np.arange(128), COLUMNS)
    done = train(neurons, others, golds(4), epochs=1, base=zeroed)
    with done.delta.applied(neurons.model):
        assert all(not part.values.any() for part in changed_parts(neurons, COLUMNS))
        assert all(part.values.any() for part in changed_parts(neurons, others))


def test_trained_weights_are_kept_and_taken_again(neurons, golds, tmp_path, monkeypatch):
    """The same training reads its file with equal weights; another seed trains anew."""
    done = train(neurons, COLUMNS, golds(4), epochs=2, folder=tmp_path)
    original, calls = torch.optim.Adam.step, []
    monkeypatch.setattr(torch.optim.Adam, "step", lambda *args: calls.append(1) or original(*args))
    again = train(neurons, COLUMNS, golds(4), epochs=2, folder=tmp_path)
    assert replace(again, delta=done.delta) == done
    assert again.delta.digest == done.delta.digest
    assert not calls
    train(neurons, COLUMNS, golds(4), epochs=2, folder=tmp_path, seed=1)
    assert calls


def test_measuring_under_a_delta_is_measuring_the_changed_model(neurons, ask):
    """Zeroed parameters answer like zeroed activations, and the unchanged run is not affected."""
    run = ask(letters(6))
    places = run.places("letters")
    before, erased = run.scaled(places, [EMPTY, COLUMNS]).log_probability
    changed = run.changed(zeros(neurons, COLUMNS))
    after = changed.scaled(places, [EMPTY]).log_probability[0]
    np.testing.assert_allclose(after, erased, atol=1e-4)
    assert np.abs(after - before).max() > 1e-3
    assert np.array_equal(run.scaled(places, [EMPTY]).log_probability[0], before)


@pytest.mark.parametrize(
    ("columns", "items", "message"), [(0, 2, "no neuron"), (4, 0, "items to train")]
)
def test_nothing_to_train_is_refused(neurons, golds, columns, items, message):
    """Training without neurons or without items is refused."""
    with pytest.raises(BadInput, match=message):
        train(neurons, COLUMNS[:columns], golds(2)[:items], golds(2))
