"""The expected numbers of rows equal the measured ones."""

import numpy as np
import pytest

from broca.neurons.crossing import crossed, crossed_steps
from broca.neurons.enhancing import ARMS, enhanced
from broca.neurons.erasing import erased
from broca.neurons.scaling import move
from broca.neurons.selection import EMPTY
from broca.neurons.sets import RandomSets
from broca.neurons.verb_steps import (
    arm_names,
    erasing_steps,
    scaling_steps,
    training_steps,
)
from broca.options import TrainingOptions

COLUMNS = np.array([1, 5, 70])
CHANCE = RandomSets(2)


def test_erasing(expecting):
    """Rows of metric and likelihood are counted for the intact model, the set and the draws."""
    names = ["letters", "others"]
    run, counts = expecting(lambda run: erasing_steps(run, names, sets=1, chance=CHANCE))
    erased(run, {"cnl": COLUMNS}, names, CHANCE)
    assert counts() == (56, 56, 56)


def test_training(expecting):
    """A training step costs three rows per item, and every arm is measured."""
    options = TrainingOptions(lr=0.02, epochs=2)
    run, counts = expecting(
        lambda run: training_steps(
            run, "letters", ["letters"], arm_names(ARMS, CHANCE), options=options
        )
    )
    enhanced(run, COLUMNS, "letters", ["letters"], CHANCE, options=options)
    rows = 8 + 4 * (2 * (3 * 4 + 4) + 4 + 8)
    assert counts() == (rows, rows, rows)


@pytest.mark.parametrize("action", ["erase", "tune"])
def test_crossing_leaves_empty_sets_out(expecting, action):
    """Rows of empty sets are removed from the total."""
    names, options = ["others", "letters"], TrainingOptions(lr=0.02, epochs=1)
    settings = {"action": action, "options": options}
    run, counts = expecting(lambda run: crossed_steps(run, names, CHANCE, **settings))
    crossed(run, {"others": COLUMNS[:0], "letters": COLUMNS}, CHANCE, **settings)
    done, total, expected = counts()
    assert done == total
    assert 0.4 * expected < done < 0.6 * expected


def test_scaling(expecting):
    """Rows of the intact model and of every factor are counted."""
    run, counts = expecting(
        lambda run: scaling_steps(run, "letters", EMPTY, factors=[0.0, 2.0], chance=CHANCE)
    )
    move(run, "letters", CHANCE)
    assert counts() == (32, 32, 32)
