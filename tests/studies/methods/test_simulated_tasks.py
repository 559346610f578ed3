"""Simulated tasks: margins, slopes, pairs and best sets, against plain arithmetic."""

from itertools import combinations

import numpy as np
import pytest

from broca.measurement import Plan
from broca.studies.methods.simulated_tasks import TASK_SCENARIOS, SimulatedTasks

COMPONENTS = 12


@pytest.fixture(scope="module", params=TASK_SCENARIOS)
def tasks(request):
    """Simulated tasks of each scenario."""
    return SimulatedTasks(
        TASK_SCENARIOS[request.param], COMPONENTS, seed=3, others=2, response="probability"
    )


def plan_of(tasks, columns, **fields):
    """Returns a plan that ablates one set on every fifth item of every task."""
    problem = tasks.problem(1000, 5)
    items = np.concatenate([problem.items, *(other.confirm for other in problem.others)])[::5]
    mask = np.isin(np.arange(COMPONENTS), columns)[None]
    return Plan(mask, np.zeros(len(items), dtype=np.intp), items, **fields)


def logit(probabilities):
    """Returns the log-odds of probabilities."""
    return np.log(probabilities / (1 - probabilities))


def test_an_answer_is_right_where_its_probability_is_above_a_half(tasks):
    """An answer is right where its probability exceeds one half."""
    probability = tasks.run(plan_of(tasks, (1, 4)))
    accuracy = tasks.run(plan_of(tasks, (1, 4), response="accuracy"))
    np.testing.assert_array_equal(accuracy.responses, probability.responses > 0.5)


def test_slopes_are_those_of_finite_differences(tasks):
    """Gradients with respect to the gates equal finite differences, with two gates at 0.5."""
    columns, step = (1, 4), 1e-4
    measured = tasks.run(plan_of(tasks, columns, scale=0.5, gradients=True))
    middle = measured.gradients[:, list(columns)].sum(axis=1)
    higher, lower = (
        tasks.run(plan_of(tasks, columns, scale=0.5 + change)).responses for change in (step, -step)
    )
    np.testing.assert_allclose(middle, (higher - lower) / (2 * step), rtol=1e-3, atol=1e-4)


def test_members_of_a_pair_stand_in_for_each_other():
    """Ablating a pair costs `pair - alone` beyond the members' sum, in the localized task only."""
    scenario = TASK_SCENARIOS["backups"]
    tasks = SimulatedTasks(scenario, COMPONENTS, seed=0, others=1, response="probability")
    problem = tasks.problem(1000, 5)
    first, second = next(
        pair
        for pair in combinations(range(COMPONENTS), 2)
        if tasks.specific(pair) - sum(tasks.specific((column,)) for column in pair) > 0.1
    )
    items = (problem.items, problem.others[0].items)
    together = []
    for places in items:
        masks = np.zeros((4, COMPONENTS), dtype=bool)
        masks[[1, 3], first] = masks[[2, 3], second] = True
        margins = logit(tasks.run(Plan.crossed(masks, places)).responses).reshape(4, -1) / 6
        intact, first_alone, second_alone, both_ablated = margins.mean(axis=1)
        together.append((intact - both_ablated) - (intact - first_alone) - (intact - second_alone))
    assert together[0] == pytest.approx(scenario.pair - scenario.alone, abs=0.06)
    assert together[1] == pytest.approx(0, abs=0.06)


def test_a_set_costs_what_its_rows_show(tasks):
    """The specific drop of a set equals the mean over its rows within their noise."""
    problem = tasks.problem(1000, 5)
    mask = np.isin(np.arange(COMPONENTS), (0, 5, 7))
    drops = []
    for items in (
        (problem.items, problem.confirm),
        *((o.items, o.confirm) for o in problem.others),
    ):
        plan = Plan.crossed(
            np.stack([np.zeros_like(mask), mask]), np.concatenate(items), response="accuracy"
        )
        intact, ablated = tasks.run(plan).responses.reshape(2, -1).mean(axis=1)
        drops.append(intact - ablated)
    assert tasks.specific((0, 5, 7)) == pytest.approx(drops[0] - np.mean(drops[1:]), abs=0.1)


def test_the_best_set_is_better_than_every_single_component(tasks):
    """The best set costs at least as much as every single component."""
    best = tasks.best(3)
    assert 1 <= len(best) <= 3
    assert tasks.specific(best) >= max(tasks.specific((column,)) for column in range(COMPONENTS))
    assert tasks.specific(()) == 0


def test_the_same_seed_makes_the_same_tasks(tasks):
    """Tasks of the same seed give equal responses; another seed gives others."""
    again = SimulatedTasks(tasks.effects, COMPONENTS, seed=3, others=2, response="probability")
    other = SimulatedTasks(tasks.effects, COMPONENTS, seed=4, others=2, response="probability")
    rows = [
        simulated.run(plan_of(simulated, (2,))).responses for simulated in (tasks, again, other)
    ]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert not np.allclose(rows[0], rows[2])
