"""The expected numbers of rows equal the measured ones."""

import numpy as np
import pytest
from neurons.conftest import letters

from broca.neurons.crossing import crossed, crossing_steps
from broca.neurons.enhancing import ARMS, enhanced
from broca.neurons.erasing import erased
from broca.neurons.expecting import (
    arm_names,
    choice_steps,
    erasing_steps,
    scaling_steps,
    training_steps,
)
from broca.neurons.methods import choose
from broca.neurons.neuron_run import INTACT
from broca.neurons.scaling import move
from broca.neurons.sets import RandomSets
from broca.options import MethodOptions, RuleOptions, TrainingOptions
from broca.runs.progress import Stages

COLUMNS = np.array([1, 5, 70])
CHANCE = RandomSets(2)


@pytest.fixture
def expecting(ask):
    """Returns a function that makes a run with expected steps, and a function with its counts."""

    def make(steps_of):
        run = ask(letters(4), letters(3, name="others", start=12), rule=RuleOptions(count=4))
        reports, steps = [], steps_of(run)
        run.run.stages = Stages(lambda stage, progress: reports.append(progress))
        run.run.stages.expect(steps)

        def counts():
            run.run.stages.enter("the end")
            run.run.stages.at(0, 0, 0)
            return reports[-1].done, reports[-1].total, sum(step.rows for step in steps)

        return run, counts

    return make


@pytest.mark.parametrize("method", ["cnl", "knowledge-neurons", "activation", "gradient", "random"])
def test_choosing(expecting, method):
    """Items of the task and, for activations, of the contrast are counted; `random` needs none."""
    settings = {"method": method, "contrast": ["others"]}
    run, counts = expecting(lambda run: choice_steps(run, "letters", **settings))
    choose(run, "letters", **settings)
    rows = {"activation": 7, "random": 0}.get(method, 4)
    assert counts() == (rows, rows, rows)


@pytest.mark.parametrize("search", ["masked-gradient", "cs-stratified"])
def test_sensing(expecting, search):
    """The row budget is expected; a search may finish early."""
    settings = {"method": "sensing", "options": MethodOptions(search=search, rows=1200)}
    run, counts = expecting(lambda run: choice_steps(run, "letters", **settings))
    choose(run, "letters", **settings)
    done, total, expected = counts()
    assert done == total
    assert 0.5 * expected < done <= expected == 1200


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
    run, counts = expecting(lambda run: crossing_steps(run, names, CHANCE, **settings))
    crossed(run, {"others": COLUMNS[:0], "letters": COLUMNS}, CHANCE, **settings)
    done, total, expected = counts()
    assert done == total
    assert 0.4 * expected < done < 0.6 * expected


def test_scaling(expecting):
    """Rows of the intact model and of every factor are counted."""
    run, counts = expecting(
        lambda run: scaling_steps(run, "letters", INTACT, factors=[0.0, 2.0], chance=CHANCE)
    )
    move(run, "letters", CHANCE)
    assert counts() == (32, 32, 32)
