"""Located neurons are scaled, erased or trained, and compared with random ones."""

import numpy as np
import pytest
from neurons.conftest import letters

from broca.errors import BadInput
from broca.neurons.experiments import crossed, enhanced, erased, moved
from broca.neurons.methods import EMPTY
from broca.options import DrawOptions, RuleOptions, TrainingOptions

RULE = RuleOptions(count=6, steps=3)


def test_each_item_is_moved_with_its_own_neurons(ask):
    """The mean change by located neurons equals erasing each item's set by hand."""
    run = ask(letters(4), letters(3, name="unrelated", start=9), rule=RULE)
    result = moved(run, "letters", DrawOptions(draws=2), factors=(0.0,))
    assert (result.items, result.empty, result.draws) == (4, 0, 2)
    changes = []
    for place, columns in zip(run.places("letters"), run.item_sets("letters"), strict=True):
        scaled = run.scaled(np.array([place]), [EMPTY, columns])
        changes.append(np.diff(np.exp(scaled.log_probability[:, 0])))
    assert result.moved[0].located.value == pytest.approx(np.mean(changes), rel=1e-3)
    assert result.moved[0].unrelated is None
    nothing = ask(letters(2), rule=RuleOptions(sigma=1e6, steps=3))
    with pytest.raises(BadInput, match="lower `sigma`"):
        moved(nothing, "letters", DrawOptions(), factors=(0.0,))


def test_losses_are_differences_of_the_measurements(ask):
    """Nats lost equal the difference of the two measurements, beside every random draw."""
    run, columns = ask(letters(6)), np.array([1, 2, 3, 20, 64, 100])
    (lost,) = erased(run, {"cnl": columns}, DrawOptions(draws=3))
    before, after = run.scaled(run.places("letters", "report"), [EMPTY, columns]).log_probability
    assert lost.log_probability_drop.value == pytest.approx((before - after).mean())
    assert lost.log_probability_drop.value != 0
    assert (lost.neurons, len(lost.random_drops)) == (6, 3)


@pytest.mark.parametrize("without", ["zeroed", "frozen"])
def test_every_arm_is_trained_from_the_same_weights(ask, without):
    """Arms and shares are complete, and more neurons raise the likelihood more."""
    options = TrainingOptions(lr=0.02, epochs=4)
    arms = enhanced(
        ask(letters(6)), np.array([1, 5, 70]), "letters", DrawOptions(draws=2), options,
        without=without,
    )  # fmt: skip
    assert [(arm.arm, arm.neurons) for arm in arms] == [
        ("untuned", 0), ("located", 3), ("without located", 125), ("random 1", 3), ("random 2", 3),
    ]  # fmt: skip
    assert arms[0].change.value == 0
    gained = [arm.log_probability_change.value for arm in arms]
    assert gained[2] > gained[1] > 0
    assert arms[1].share_of_parameters < arms[2].share_of_parameters / 30


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
