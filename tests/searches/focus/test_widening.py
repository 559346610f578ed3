"""Widening estimates by gradients what components add to a set."""

import numpy as np
import pytest

from broca import searches
from broca.measurement import Measurement
from broca.searches import GeneratorSearch, OtherTask, Problem
from broca.searches.focus.widening import Additions, measure_additions, sets_and_items
from broca.searches.measuring import Measuring

COUNT = 30


def problem(*others):
    """A task over 30 components, with other tasks."""
    return Problem(
        COUNT,
        np.arange(40),
        5,
        None,
        0,
        others=tuple(
            OtherTask(name, np.arange(100 * place, 100 * place + 40), np.zeros(0, dtype=np.intp))
            for place, name in enumerate(others, start=1)
        ),
        continuous=True,
        differentiable=True,
    )


def run(rounds, slopes):
    """Runs a generator of plans with gradients; `slopes(mask, item)` are the gradients of a row."""
    plans = []

    def execute(plan):
        plans.append(plan)
        gradients = np.stack(
            [
                slopes(plan.masks[mask], item)
                for mask, item in zip(plan.mask_index, plan.item_index, strict=True)
            ]
        )
        return Measurement(plan, np.zeros(len(plan)), gradients.astype(np.float32))

    return searches.run(GeneratorSearch(rounds), execute), plans


def pair(mask, item):
    """Component 7 adds 0.5 to the task alone once 3 is ablated; 9 adds 0.3 to all tasks."""
    slopes = np.zeros(COUNT)
    slopes[7] = 0.5 * mask[3] * (item < 100)
    slopes[9] = 0.3
    return slopes


def sets(*members):
    """Returns the masks of sets."""
    masks = np.zeros((len(members), COUNT), dtype=bool)
    for mask, columns in zip(masks, members, strict=True):
        mask[list(columns)] = True
    return masks


def test_adds_is_what_the_task_loses_beyond_the_others():
    """Losses beyond those of the other tasks are counted, only for the set that they depend on."""
    rounds = measure_additions(Measuring(problem("other"), 1000), sets([3, 4], [4, 5]), 6)
    additions, plans = run(rounds, pair)
    np.testing.assert_allclose(additions.adds[:, 7], [0.5, 0.0], atol=1e-6)
    np.testing.assert_allclose(additions.adds[:, 9], 0.0, atol=1e-6)
    assert [len(plan) for plan in plans] == [12, 12]
    assert all(plan.gradients for plan in plans)
    assert all(plan.masks[0, [3, 4]].all() and plan.masks[1, [4, 5]].all() for plan in plans)


def test_without_other_tasks_all_that_is_lost_counts():
    """Without other tasks a single plan is measured, and all losses count."""
    measuring = Measuring(problem(), 1000)
    additions, plans = run(measure_additions(measuring, sets([3]), 4), pair)
    np.testing.assert_allclose(additions.adds[0, [7, 9]], [0.5, 0.3], atol=1e-6)
    assert [plan.cost for plan in plans] == [12]
    assert measuring.rows == 12


def test_errors_are_those_of_means_over_items():
    """Slopes that differ between items have the standard error of their mean."""

    def noisy(mask, item):
        slopes = pair(mask, item)
        slopes[11] = 1.0 if item % 2 else -1.0
        return slopes

    additions, _ = run(measure_additions(Measuring(problem(), 1000), sets([3]), 40), noisy)
    assert additions.errors[0, 11] == pytest.approx(1 / np.sqrt(40), rel=0.05)
    assert additions.errors[0, 7] < 0.01


def additions_to_two_sets(adds, *, errors=0.1):
    """Returns the additions of 30 components to two sets, none of which is ablated."""
    full = np.zeros((2, COUNT))
    for column, values in adds.items():
        full[:, column] = values
    return Additions(sets([0], [1]), full, np.full(full.shape, errors), np.ones(full.shape, bool))


def test_newcomers_add_most_on_average_and_in_turn_to_one_set():
    """The largest mean addition comes first, then the largest to one set, without known ones."""
    additions = additions_to_two_sets({4: (0.4, 0.4), 5: (0.3, 0.3), 6: (0.7, -0.7), 8: (0.9, 0.9)})
    assert additions.newcomers(np.array([0, 1, 8]), 3).tolist() == [4, 6, 5]


def test_newcomers_are_no_more_than_there_are():
    """If fewer components are left than are requested, all of them are returned."""
    additions = additions_to_two_sets({4: (0.4, 0.4)})
    assert additions.newcomers(np.setdiff1d(np.arange(COUNT), [4]), 3).tolist() == [4]


def test_what_was_ablated_in_the_rows_says_nothing():
    """Additions of a component that is ablated in all rows of a set are not counted."""
    additions = additions_to_two_sets({4: (5.0, 0.0), 5: (0.2, 0.2)})
    additions.open[0, 4] = False
    assert additions.newcomers(np.array([0, 1]), 1).tolist() == [5]


@pytest.mark.parametrize("bundle", [1, 2])
@pytest.mark.parametrize("rows", [0, 5, 40, 400, 5000])
def test_sets_and_items_stay_within_the_rows(rows, bundle):
    """A row with its gradient counts as three rows, and most of the permitted rows are used."""
    number, items = sets_and_items(rows, bundle)
    spent = 3 * bundle * number * items
    assert spent <= rows
    assert rows - spent < 3 * bundle * max(items, 1)
