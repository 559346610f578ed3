"""The atlas search on simulated tasks: shared masks, fixed effects of items and budgets."""

import numpy as np
import pytest

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement
from broca.searches.atlas import AtlasProblem, atlas_rows, measure_atlas

ITEMS = 40
TRUTH = np.zeros((3, 48))
TRUTH[0, [1, 2, 30]] = TRUTH[1, [7, 30]] = TRUTH[2, [11, 12, 30]] = -0.3


def problem(*, rows=2400, seed=0, continuous=True):
    """Returns a problem in which items of task `t` start at `100 * t`."""
    items = {f"task {t}": np.arange(100 * t, 100 * t + ITEMS) for t in range(3)}
    return AtlasProblem(48, items, rows, seed, continuous)


class Tasks:
    """A simulated model whose responses differ more between items than between masks."""

    def __init__(self, noise=0.2):
        self.noise, self.plans = noise, []

    @property
    def rows(self):
        """Number of measured rows."""
        return sum(len(plan) for plan in self.plans)

    def run(self, plan):
        """Responses are the item's level plus the mask's effects on the task plus noise."""
        self.plans.append(plan)
        lost = plan.masks @ TRUTH.T
        keys = plan.masks @ np.arange(1, 49)
        responses = [
            10 * np.sin(item)
            + lost[mask, item // 100]
            + self.noise * np.random.default_rng([int(keys[mask]), int(item)]).normal()
            for mask, item in zip(plan.mask_index, plan.item_index, strict=True)
        ]
        return Measurement(plan, np.array(responses))


def solve(tasks=None, **options):
    """Returns the chart of the search."""
    return searches.run(measure_atlas(problem(**options)), (tasks or Tasks()).run)


def test_every_effect_on_every_task():
    """Effects agree with the truth up to noise, although items have different levels."""
    chart = solve()
    assert chart.tasks == ("task 0", "task 1", "task 2")
    assert np.abs(chart.joint.effects - TRUTH).max() < 0.15
    assert np.corrcoef(chart.joint.effects.ravel(), TRUTH.ravel())[0, 1] > 0.9
    assert chart.joint.resampled.shape == (200, 3, 48)


def test_tasks_share_every_mask():
    """Row r of every task is measured under mask r, and items are used equally often."""
    tasks = Tasks()
    chart = solve(tasks)
    last = tasks.plans[-1]
    assert np.array_equal(last.mask_index, np.repeat(np.arange(len(chart.masks)), 3))
    assert np.array_equal(
        last.item_index.reshape(-1, 3) // 100, np.tile([0, 1, 2], (len(chart.masks), 1))
    )
    assert chart.changes.shape == (len(chart.masks), 3)
    used = np.bincount(last.item_index)
    assert used[used > 0].max() - used[used > 0].min() <= 1


@pytest.mark.parametrize("rows", [600, 1000, 1501])
def test_budget_is_kept_and_spent(rows):
    """The budget is never exceeded, and less than a mask's rows are left."""
    tasks = Tasks()
    solve(tasks, rows=rows)
    assert rows - 3 < tasks.rows <= rows


def test_same_seed_same_bits_and_another_seed_other_masks():
    """The seed determines masks and resamples."""
    first, second = solve(rows=600), solve(rows=600)
    assert np.array_equal(first.joint.resampled, second.joint.resampled)
    assert np.array_equal(first.masks, second.masks)
    assert not np.array_equal(first.masks, solve(rows=600, seed=1).masks)


def test_response_is_probability_where_items_have_one():
    """Without probabilities, rows have the run's own response."""
    for continuous, response in ((True, "probability"), (False, None)):
        tasks = Tasks()
        solve(tasks, rows=600, continuous=continuous)
        assert {plan.response for plan in tasks.plans} == {response}


def test_rows_of_an_atlas():
    """Without a budget there are 800 rows for each task; one task and few rows are refused."""
    assert atlas_rows(None, 3) == 2400
    assert atlas_rows(600, 3) == 600
    with pytest.raises(BadInput, match="at least two, not 1"):
        atlas_rows(None, 1)
    with pytest.raises(BadInput, match=r"`rows` 599 is too few .* at least 600"):
        atlas_rows(599, 3)
