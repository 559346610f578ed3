"""The rows that are expected are those that are measured."""

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
    """Makes a run that expects steps; tells afterwards what was done of what was expected."""

    def make(steps_of):
        run = ask(letters(4), letters(3, name="others", start=12), rule=RuleOptions(count=4))
        seen, steps = [], steps_of(run)
        run.run.stages = Stages(lambda stage, progress: seen.append(progress))
        run.run.stages.expect(steps)

        def told():
            run.run.stages.enter("the end")
            run.run.stages.at(0, 0, 0)
            return seen[-1].done, seen[-1].total, sum(step.rows for step in steps)

        return run, told

    return make


@pytest.mark.parametrize("method", ["cnl", "knowledge-neurons", "activation", "gradient", "random"])
def test_choosing(expecting, method):
    """Items of the task, and of the tasks that it is compared with; nothing for chance."""
    asked = {"method": method, "contrast": ["others"]}
    run, told = expecting(lambda run: choice_steps(run, "letters", **asked))
    choose(run, "letters", **asked)
    rows = {"activation": 7, "random": 0}.get(method, 4)
    assert told() == (rows, rows, rows)


@pytest.mark.parametrize("search", ["masked-gradient", "cs-stratified"])
def test_sensing(expecting, search):
    """The budget; a search may leave rows out."""
    asked = {"method": "sensing", "options": MethodOptions(search=search, rows=1200)}
    run, told = expecting(lambda run: choice_steps(run, "letters", **asked))
    choose(run, "letters", **asked)
    done, total, expected = told()
    assert done == total
    assert 0.5 * expected < done <= expected == 1200


def test_erasing(expecting):
    """Metric and likelihood, of the intact model, the set and the draws."""
    names = ["letters", "others"]
    run, told = expecting(lambda run: erasing_steps(run, names, sets=1, chance=CHANCE))
    erased(run, {"cnl": COLUMNS}, names, CHANCE)
    assert told() == (56, 56, 56)


def test_training(expecting):
    """Steps count three rows an item; every arm is measured."""
    options = TrainingOptions(lr=0.02, epochs=2)
    run, told = expecting(
        lambda run: training_steps(
            run, "letters", ["letters"], arm_names(ARMS, CHANCE), options=options
        )
    )
    enhanced(run, COLUMNS, "letters", ["letters"], CHANCE, options=options)
    rows = 8 + 4 * (2 * (3 * 4 + 4) + 4 + 8)
    assert told() == (rows, rows, rows)


@pytest.mark.parametrize("action", ["erase", "tune"])
def test_crossing_leaves_empty_sets_out(expecting, action):
    """Their rows leave the total."""
    names, options = ["others", "letters"], TrainingOptions(lr=0.02, epochs=1)
    asked = {"action": action, "options": options}
    run, told = expecting(lambda run: crossing_steps(run, names, CHANCE, **asked))
    crossed(run, {"others": COLUMNS[:0], "letters": COLUMNS}, CHANCE, **asked)
    done, total, expected = told()
    assert done == total
    assert 0.4 * expected < done < 0.6 * expected


def test_scaling(expecting):
    """The intact model, then every factor."""
    run, told = expecting(
        lambda run: scaling_steps(run, "letters", INTACT, factors=[0.0, 2.0], chance=CHANCE)
    )
    move(run, "letters", CHANCE)
    assert told() == (32, 32, 32)
