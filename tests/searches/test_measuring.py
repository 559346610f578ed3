"""Measurements of searches: plans, losses and the rows that are left."""

import numpy as np
import pytest
from task_problems import problem_of

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement
from broca.searches import GeneratorSearch
from broca.searches.measuring import Measuring, budget_of

COMPONENTS = 6


def problem(*, others=2, rows=None):
    """Returns a problem with ten items of each task to search on and ten to confirm on."""
    return problem_of(1 + others, COMPONENTS, items=10, k=3, rows=rows, continuous=True)


def lost(mask, item):
    """Returns the loss by a mask on an item, which depends on both."""
    return 0.01 * int(mask @ 2 ** np.arange(COMPONENTS)) * (1 + item % 10) / 10


def answered(steps, plans=None):
    """Returns the result of a stage on a model that loses `lost`; plans are added to `plans`."""

    def execute(plan):
        if plans is not None:
            plans.append(plan)
        rows = zip(plan.mask_index, plan.item_index, strict=True)
        losses = [lost(plan.masks[mask], item) for mask, item in rows]
        return Measurement(plan, 1 - np.array(losses))

    return searches.run(GeneratorSearch(steps), execute)


def masks(*sizes):
    """Returns masks of the first components, one mask for each size."""
    return np.array([np.arange(COMPONENTS) < size for size in sizes])


@pytest.mark.parametrize(("others", "budget"), [(0, 800), (1, 1600), (3, 3200)])
def test_default_budget_counts_the_tasks(others, budget):
    """The default is 800 rows for each task, and a given budget is used as it is."""
    assert budget_of(problem(others=others), "focus") == budget
    assert budget_of(problem(others=others, rows=700), "focus") == 700


@pytest.mark.parametrize(("others", "fewest"), [(0, 300), (2, 600)])
def test_too_small_a_budget_is_refused(others, fewest):
    """The message has the required number of rows."""
    budget_of(problem(others=others, rows=fewest), "focus")
    with pytest.raises(BadInput, match=f"too few for focus: it needs {fewest} at least"):
        budget_of(problem(others=others, rows=fewest - 1), "focus")


def shared(measuring):
    """Returns the number of masks that are also measured on other tasks, if there are any."""
    return 2 if measuring.problem.others else 0


STAGES = {
    "drops": lambda measuring: measuring.drops(masks(1, 2, 3)),
    "bundles": lambda measuring: measuring.bundles(masks(1, 2, 3), 2),
    "crossed": lambda measuring: measuring.crossed(masks(1, 2, 3), 4),
    "each on one": lambda measuring: measuring.each_on_one(
        masks(1, 2, 3), shared(measuring), "items"
    ),
    "each on one, confirm": lambda measuring: measuring.each_on_one(
        masks(1, 2, 3), shared(measuring), "confirm"
    ),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("others", [0, 2])
def test_what_is_observed_is_what_each_mask_lost_on_each_item(stage, others):
    """The task's rows come before those of the others on the first masks, and rows are counted."""
    measuring, plans = Measuring(problem(others=others), 1000), []
    answered(measuring.measure_intact(1000), plans)
    answered(measuring.measure_confirm(1000), plans)
    answered(STAGES[stage](measuring), plans)
    (observed,) = measuring.observed
    count = len(observed.masks)
    rows = np.concatenate([np.arange(count), np.arange(len(observed.losses) - count)])
    expected = [
        lost(observed.masks[mask], item) for mask, item in zip(rows, observed.items, strict=True)
    ]
    np.testing.assert_allclose(observed.losses, expected, atol=1e-12)
    assert (observed.items[:count] < 100).all()
    assert (observed.items[count:] >= 100).all()
    assert (len(observed.losses) > count) == (others > 0 and stage != "drops")
    confirmed = observed.items % 100 >= 10
    assert confirmed.all() if observed.part == "confirm" else not confirmed.any()
    assert measuring.rows == sum(plan.cost for plan in plans)


def test_rows_are_forgone_and_allowed():
    """Forgone rows are not left, and allowed rows are added to those already measured."""
    measuring = Measuring(problem(), 1000)
    measuring.forgo(300, "known")
    assert measuring.rows_left == 700
    assert measuring.enough == ["known"]
    answered(measuring.measure_intact(100))
    measuring.allow(50)
    assert measuring.rows_left == 50
    assert not measuring.knows_confirm
    answered(measuring.measure_confirm(100))
    assert measuring.knows_confirm
