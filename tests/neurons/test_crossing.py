"""Neurons located on one task are measured on every task."""

import numpy as np
import pytest
from neurons.conftest import letters

from broca.neurons.crossing import crossed
from broca.neurons.sets import RandomSets
from broca.options import TrainingOptions


@pytest.mark.parametrize("action", ["erase", "tune"])
def test_crossing_measures_every_pair(ask, action):
    """Each task's neurons are measured on each task; tasks with empty sets are left out."""
    run = ask(letters(4), letters(4, name="others", start=12))
    sets = {"letters": np.array([1, 2, 70]), "others": np.array([], dtype=int)}
    options = TrainingOptions(lr=0.02, epochs=2)
    pairs = crossed(run, sets, RandomSets(1), action=action, options=options)
    assert [(pair.located_on, pair.measured_on) for pair in pairs] == [
        ("letters", "letters"), ("letters", "others"),
    ]  # fmt: skip
    assert [pair.relation for pair in pairs] == ["same data", "other capability"]
    gained = pairs[0].log_probability_change
    assert gained.value > 0 if action == "tune" else gained.value != 0
    assert gained.low <= gained.value <= gained.high
