"""Measurements of a search: plans, losses and the rows that are left."""

import numpy as np
import pytest
from task_problems import problem_of

from broca import searches
from broca.measurement import Measurement
from broca.searches.pooled.measurer import LossMeasurer

COMPONENTS = 6


def lost(mask, item):
    """Returns the loss by a mask on an item, which depends on both."""
    return 0.01 * int(mask @ 2 ** np.arange(COMPONENTS)) * (1 + item % 10) / 10


def answered(steps, plans):
    """Returns the result of a stage on a model that loses `lost`; plans are added to `plans`."""

    def execute(plan):
        plans.append(plan)
        rows = zip(plan.mask_index, plan.item_index, strict=True)
        return Measurement(plan, 1 - np.array([lost(plan.masks[m], item) for m, item in rows]))

    return searches.run(steps, execute)


STAGES = {
    "crossed": lambda measurer, masks, others: measurer.crossed(masks, 4),
    "items": lambda measurer, masks, others: measurer.each_on_one(masks, others, "items"),
    "confirm": lambda measurer, masks, others: measurer.each_on_one(masks, others, "confirm"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_losses_are_what_each_mask_lost_on_each_item(stage):
    """Rows of the task and of the others are kept apart, and all are counted."""
    problem = problem_of(3, COMPONENTS, items=10, k=3, continuous=True)
    measurer, plans = LossMeasurer(problem, 1000, 1.0), []
    answered(measurer.measure_intact("items", 1000), plans)
    answered(measurer.measure_intact("confirm", 1000), plans)
    masks = np.array([np.arange(COMPONENTS) < size for size in (1, 2, 3)])
    answered(STAGES[stage](measurer, masks, 2), plans)
    part = "items" if stage == "items" else "confirm"
    assert {key[1] for key in measurer.losses} == {part}
    assert ("others", part) in measurer.losses
    for (target, _), rows in measurer.losses.items():
        met = zip(rows.masks, rows.items, strict=True)
        expected = [lost(mask, item) for mask, item in met]
        np.testing.assert_allclose(rows.losses, expected, atol=1e-12)
        assert ((rows.items < 100) == (target == "task")).all()
        assert ((rows.items % 100 >= 10) == (part == "confirm")).all()
    assert plans[-1].response == ("probability" if part == "items" else "accuracy")
    assert 1000 - measurer.rows_left == measurer.rows == sum(len(plan) for plan in plans)
