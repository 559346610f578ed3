"""What is asked for, what is made of the answers, and what is kept of them."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.measurement import Measurement
from broca.searches import OtherTask, Problem
from broca.searches.measuring import Measuring, budget_of

COMPONENTS = 6


def problem(*, others=2, rows=None):
    """Ten items a task to search on, and ten to confirm on."""

    def items(task, first):
        return np.arange(100 * task + first, 100 * task + first + 10)

    return Problem(
        COMPONENTS,
        items(0, 0),
        3,
        rows,
        0,
        confirm=items(0, 10),
        others=tuple(
            OtherTask(f"task {task}", items(task, 0), items(task, 10))
            for task in range(1, others + 1)
        ),
        continuous=True,
    )


def lost(mask, item):
    """What a mask costs on an item: its own amount for every pair of the two."""
    return 0.01 * int(mask @ 2 ** np.arange(COMPONENTS)) * (1 + item % 10) / 10


def answered(steps, plans=None):
    """What a stage returns on a model that loses `lost`; its plans are added to `plans`."""
    measurement = None
    while True:
        try:
            plan = steps.send(measurement)
        except StopIteration as end:
            return end.value
        if plans is not None:
            plans.append(plan)
        rows = zip(plan.mask_index, plan.item_index, strict=True)
        losses = [lost(plan.masks[mask], item) for mask, item in rows]
        measurement = Measurement(plan, 1 - np.array(losses))


def masks(*sizes):
    """The first so many components each."""
    return np.array([np.arange(COMPONENTS) < size for size in sizes])


@pytest.mark.parametrize(("others", "budget"), [(0, 800), (1, 1600), (3, 3200)])
def test_default_budget_counts_the_tasks(others, budget):
    """800 rows each; a budget that is given is taken as it is."""
    assert budget_of(problem(others=others), "focus") == budget
    assert budget_of(problem(others=others, rows=700), "focus") == 700


@pytest.mark.parametrize(("others", "fewest"), [(0, 300), (2, 600)])
def test_too_small_a_budget_is_refused(others, fewest):
    """With the number that would do."""
    budget_of(problem(others=others, rows=fewest), "focus")
    with pytest.raises(BadInput, match=f"too few for focus: it needs {fewest} at least"):
        budget_of(problem(others=others, rows=fewest - 1), "focus")


def shared(measuring):
    """Masks that the others are asked about too, where there are others."""
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
    """The task's rows first, then those of the others, of the first masks; rows are counted."""
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
    """What is forgone is not left; what is allowed comes after what was spent."""
    measuring = Measuring(problem(), 1000)
    measuring.forgo(300, "known")
    assert measuring.left == 700
    assert measuring.enough == ["known"]
    answered(measuring.measure_intact(100))
    measuring.allow(50)
    assert measuring.left == 50
    assert not measuring.knows_confirm
    answered(measuring.measure_confirm(100))
    assert measuring.knows_confirm
