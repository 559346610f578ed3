"""Located neurons are scaled, erased or trained, and compared with random ones."""

import numpy as np
import pytest
import torch
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.experiments import crossed, enhanced, erased, moved
from broca.neurons.methods import EMPTY
from broca.options import DrawOptions, RuleOptions, TrainingOptions

RULE = RuleOptions(count=6, steps=3)


def test_each_item_is_moved_with_its_own_neurons(ask):
    """The mean change by located neurons equals erasing each item's set by hand."""
    run = ask(letters(4), letters(3, name="unrelated", start=9), rule=RULE)
    both = {"unrelated": run.places("unrelated"), "factors": (0.0, 2.0)}
    result = moved(run, "letters", DrawOptions(draws=2), **both)
    assert [factor.factor for factor in result.moved] == [0.0, 2.0]
    assert (result.items, result.empty, result.draws) == (4, 0, 2)
    changes = []
    for place, columns in zip(run.places("letters"), run.item_sets("letters"), strict=True):
        scaled = run.scaled(np.array([place]), [EMPTY, columns])
        before, after = np.exp(scaled.log_probability[:, 0])
        changes.append(after - before)
    assert result.moved[0].located.value == pytest.approx(np.mean(changes), rel=1e-3)
    assert result.moved[0].unrelated is not None
    alone = moved(run, "letters", DrawOptions(draws=1), factors=(0.0,))
    assert alone.moved[0].unrelated is None
    nothing = ask(letters(2), rule=RuleOptions(sigma=1e6, steps=3))
    with pytest.raises(BadInput, match="lower `sigma`"):
        moved(nothing, "letters", DrawOptions(), factors=(0.0,))


def test_losses_are_differences_of_the_measurements(ask):
    """Nats lost equal the difference of the two measurements, and every random draw is reported."""
    run, columns = ask(letters(6)), np.array([1, 2, 3, 20, 64, 100])
    (lost,) = erased(run, {"cnl": columns}, DrawOptions(draws=3))
    assert (lost.neurons, len(lost.random_drops)) == (6, 3)
    assert lost.drop.value == pytest.approx(lost.before.value - lost.after.value)
    assert lost.excess.value == pytest.approx(lost.drop.value - np.mean(lost.random_drops))
    before, after = run.scaled(run.places("letters", "report"), [EMPTY, columns]).log_probability
    assert lost.log_probability_drop.value == pytest.approx((before - after).mean())
    assert lost.log_probability_drop.value != 0


@pytest.mark.parametrize("without", ["zeroed", "frozen"])
def test_every_arm_is_trained_from_the_same_weights(neurons, ask, without, tmp_path):
    """Arms and shares are complete, training raises the likelihood, and weights are restored."""
    before = {n: v.clone() for n, v in neurons.model.model.state_dict().items()}
    run, located = ask(letters(6), journal=tmp_path / "j.sqlite"), np.array([1, 5, 70])
    options = TrainingOptions(lr=0.02, epochs=4)
    arms = enhanced(run, located, "letters", DrawOptions(draws=2), options, without=without)
    assert [(arm.arm, arm.neurons) for arm in arms] == [
        ("untuned", 0), ("located", 3), ("without located", 125), ("random 1", 3), ("random 2", 3),
    ]  # fmt: skip
    assert arms[0].change.value == 0
    gained = [arm.log_probability_change.value for arm in arms]
    assert gained[2] > gained[1] > 0
    assert arms[1].share_of_parameters < arms[2].share_of_parameters / 30
    after = neurons.model.model.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in after.items())
    assert len(list((tmp_path / "deltas").iterdir())) == 4


@pytest.mark.parametrize("action", ["erase", "tune"])
def test_crossing_measures_every_pair(ask, action):
    """Each task's neurons are measured on each task; tasks with empty sets are left out."""
    run = ask(letters(4), letters(4, name="others", start=12))
    sets = {"letters": np.array([1, 2, 70]), "others": EMPTY}
    training = TrainingOptions(lr=0.02, epochs=2) if action == "tune" else None
    pairs = crossed(run, sets, DrawOptions(draws=1), training)
    assert [(pair.located_on, pair.measured_on, pair.relation) for pair in pairs] == [
        ("letters", "letters", "same data"), ("letters", "others", "other capability"),
    ]  # fmt: skip
    gained = pairs[0].log_probability_change
    assert gained.value > 0 if action == "tune" else gained.value != 0
    assert gained.low <= gained.value <= gained.high
