"""The atlas search on simulated tasks: shared masks, fixed effects of items and budgets."""

import numpy as np
import pytest
from task_problems import rows_of, searched

from broca.measurement import Measurement
from broca.searches.atlas import AtlasProblem, atlas_rows, measure_atlas

ITEMS = 40
TRUTH = np.zeros((3, 48))
TRUTH[0, [1, 2, 30]] = TRUTH[1, [7, 30]] = TRUTH[2, [11, 12, 30]] = -0.3


def respond(plan):
    """Returns the level of the item, with the effects of the mask on the task, and noise."""
    lost = plan.masks @ TRUTH.T
    keys = plan.masks @ np.arange(1, 49)
    responses = [
        10 * np.sin(item)
        + lost[mask, item // 100]
        + 0.2 * np.random.default_rng([int(keys[mask]), int(item)]).normal()
        for mask, item in zip(plan.mask_index, plan.item_index, strict=True)
    ]
    return Measurement(plan, np.array(responses))


def solve(*, rows=2400, seed=0):
    """Returns the chart of a search and its plans; items of task `t` start at `100 * t`."""
    items = {f"task {t}": np.arange(100 * t, 100 * t + ITEMS) for t in range(3)}
    return searched(measure_atlas(AtlasProblem(48, items, rows, seed)), respond)


def test_every_effect_on_every_task():
    """Effects agree with the truth, although items have different levels; tasks share every mask.

    Row r of every task is measured under mask r, and items are used equally often.
    """
    chart, plans = solve()
    assert chart.tasks == ("task 0", "task 1", "task 2")
    assert np.abs(chart.joint.effects - TRUTH).max() < 0.15
    assert np.corrcoef(chart.joint.effects.ravel(), TRUTH.ravel())[0, 1] > 0.9
    assert chart.joint.resampled.shape == (200, 3, 48)
    count, last = len(chart.masks), plans[-1]
    assert chart.changes.shape == (count, 3)
    assert np.array_equal(last.mask_index, np.repeat(np.arange(count), 3))
    assert np.array_equal(last.item_index // 100, np.tile([0, 1, 2], count))
    used = np.bincount(last.item_index)
    assert used[used > 0].max() - used[used > 0].min() <= 1


@pytest.mark.parametrize("rows", [600, 1000, 1501])
def test_budget_is_kept_and_spent(rows):
    """Less than a mask's rows are left, and rows have the run's response."""
    _, plans = solve(rows=rows)
    assert rows - 3 < rows_of(plans) <= rows
    assert {plan.response for plan in plans} == {None}


def test_rows_of_an_atlas():
    """Without a budget there are 800 rows for each task."""
    assert atlas_rows(None, 3) == 2400
