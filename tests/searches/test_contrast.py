"""Single-task methods that subtract the losses of other tasks."""

import numpy as np
import pytest
from task_problems import problem_of

from broca import searches
from broca.measurement import Measurement
from broca.searches import METHODS, make_search

COUNT = 12
SHARED, OWN = 2, 7
"""The component that every task needs most, and the one that the task alone needs."""
ALONE = [name for name, method in METHODS.items() if not method.measures_others]


class Model:
    """A simulated model: one component costs every task 0.6, another costs the first task 0.3."""

    def __init__(self):
        self.rows, self.plans = 0, []

    def run(self, plan):
        """Returns responses with a level for each item, and the slopes of the gates."""
        self.rows += plan.cost
        self.plans.append(plan)
        slopes = np.zeros((len(plan), COUNT))
        slopes[:, SHARED] = 0.6
        slopes[plan.item_index < 100, OWN] = 0.3
        lost = (plan.masks[plan.mask_index] * slopes).sum(axis=1)
        level = 1 + 0.1 * np.sin(plan.item_index)
        noise = np.random.default_rng(self.rows).normal(0, 0.01, len(plan))
        return Measurement(plan, level - lost + noise, slopes if plan.gradients else None)

    def solve(self, method, *, rows=None, tasks=2, **options):
        """Returns the ranking of a method; the second task has the items from 100 on."""
        problem = problem_of(
            tasks, COUNT, items=20, k=3, rows=rows, continuous=True, differentiable=True
        )
        return searches.run(make_search(method, problem, **options), self.run)


@pytest.mark.parametrize("method", ALONE)
def test_what_every_task_needs_comes_first_only_without_a_contrast(method):
    """Without a contrast the shared component ranks first, and with it the specific one."""
    assert Model().solve(method).order[0] == SHARED
    weighed = Model().solve(method, contrast=1.0)
    assert weighed.order[0] == OWN
    assert weighed.options["contrast"] == 1.0
    assert weighed.effects[OWN] < weighed.effects[SHARED]


@pytest.mark.parametrize("method", ["coar", "cs-fresh", "gradient-masked"])
def test_a_budget_pays_for_partners_too(method):
    """The budget includes the rows of partners and is not exceeded."""
    model = Model()
    model.solve(method, rows=1200, contrast=1.0)
    assert 700 < model.rows <= 1200


def test_effects_are_those_of_the_task_less_those_of_the_others():
    """The specific component keeps its effect, and that of the shared one is subtracted.

    An item has the same partner under every mask, so that differences between items cancel.
    """
    model = Model()
    ranking = model.solve("one-shot", contrast=1.0)
    assert ranking.effects[OWN] == pytest.approx(-0.3, abs=0.01)
    assert ranking.effects[SHARED] == pytest.approx(0.0, abs=0.01)
    half = Model().solve("one-shot", contrast=0.5)
    assert half.effects[SHARED] == pytest.approx(-0.3, abs=0.01)
    partners, pairs = model.plans
    assert partners.item_index.min() >= 100
    assert not partners.masks.any()
    first, second = np.split(pairs.item_index, 2)
    np.testing.assert_array_equal(*np.split(pairs.mask_index, 2))
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == 20
