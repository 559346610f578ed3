"""Single-task methods that subtract the losses of other tasks."""

import numpy as np
import pytest
from task_problems import problem_of, rows_of, searched

from broca.measurement import Measurement
from broca.searches import METHODS
from broca.searches.problem import TooFewRows

COUNT = 12
SHARED, OWN = 2, 7
"""The component that every task needs most, and the one that the task alone needs."""
ALONE = [name for name, method in METHODS.items() if not method.measures_others]


def respond(plan):
    """Returns responses with a level for each item, and the slopes of the gates.

    One component costs every task 0.6, another costs the first task 0.3.
    """
    slopes = np.zeros((len(plan), COUNT))
    slopes[:, SHARED] = 0.6
    slopes[plan.item_index < 100, OWN] = 0.3
    lost = (plan.masks[plan.mask_index] * slopes).sum(axis=1)
    level = 1 + 0.1 * np.sin(plan.item_index)
    noise = np.random.default_rng(len(plan)).normal(0, 0.01, len(plan))
    return Measurement(plan, level - lost + noise, slopes if plan.gradients else None)


def solve(method, *, rows=None, **options):
    """Returns the ranking of a method and its plans; the second task has the items from 100 on."""
    problem = problem_of(2, COUNT, items=20, k=3, rows=rows, continuous=True, differentiable=True)
    return searched(method, respond, problem, **options)


@pytest.mark.parametrize("method", ALONE)
def test_what_every_task_needs_comes_first_only_without_a_contrast(method):
    """Without a contrast the shared component ranks first, and with it the specific one."""
    assert solve(method)[0].order[0] == SHARED
    weighed, _ = solve(method, contrast=1.0)
    assert weighed.order[0] == OWN
    assert weighed.options["contrast"] == 1.0
    assert weighed.effects[OWN] < weighed.effects[SHARED]


@pytest.mark.parametrize("method", ["coar", "cs-fresh", "gradient-masked"])
def test_a_budget_pays_for_partners_too(method):
    """The budget includes the rows of partners; one that is too small names what suffices."""
    assert 700 < rows_of(solve(method, rows=1200, contrast=1.0)[1]) <= 1200
    with pytest.raises(TooFewRows, match="`rows` 5 is too few") as refused:
        solve(method, rows=5, contrast=1.0)
    assert rows_of(solve(method, rows=refused.value.fewest, contrast=1.0)[1]) > 0


def test_partners_are_spread_over_the_items_of_each_other_task():
    """Two others have half of the partners each, from their first item on to their last two."""
    problem = problem_of(3, COUNT, items=20, continuous=True)
    _, (partners, _) = searched("one-shot", respond, problem, contrast=1.0)
    np.testing.assert_array_equal(np.sort(partners.item_index) % 100, [*range(0, 20, 2)] * 2)


def test_effects_are_those_of_the_task_less_those_of_the_others():
    """The specific component keeps its effect, and that of the shared one is subtracted.

    An item has the same partner under every mask, so that differences between items cancel. What
    is left is noise with a standard error of 0.005.
    """
    ranking, (partners, pairs) = solve("one-shot", contrast=1.0)
    assert ranking.effects[OWN] == pytest.approx(-0.3, abs=0.02)
    assert ranking.effects[SHARED] == pytest.approx(0.0, abs=0.02)
    half, _ = solve("one-shot", contrast=0.5)
    assert half.effects[SHARED] == pytest.approx(-0.3, abs=0.02)
    assert partners.item_index.min() >= 100
    assert not partners.masks.any()
    first, second = np.split(pairs.item_index, 2)
    np.testing.assert_array_equal(*np.split(pairs.mask_index, 2))
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == 20
