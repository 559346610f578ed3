"""Single-task methods that subtract the losses of other tasks."""

import numpy as np
import pytest

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement
from broca.searches import METHODS, OtherTask, Problem, make_search

COUNT = 12
SHARED, OWN = 2, 7
"""The component that every task needs most, and the one that the task alone needs."""
ALONE = [name for name, method in METHODS.items() if not method.measures_others]


def problem(*, rows=None, others=True):
    """A task on items 0 to 39, and another one on items 100 to 139."""
    other = OtherTask("other", np.arange(100, 120), np.arange(120, 140))
    return Problem(
        COUNT, np.arange(20), 3, rows, 0, confirm=np.arange(20, 40),
        others=(other,) if others else (), continuous=True, differentiable=True,
    )  # fmt: skip


class Model:
    """A simulated model: one component costs every task 0.6, another costs the first task 0.3."""

    def __init__(self):
        self.rows, self.plans = 0, []

    def run(self, plan):
        """Returns responses with a level for each item, and the slopes of the gates."""
        self.rows += plan.cost
        self.plans.append(plan)
        first = plan.item_index < 100
        slopes = np.zeros((len(plan), COUNT))
        slopes[:, SHARED] = 0.6
        slopes[first, OWN] = 0.3
        lost = (plan.masks[plan.mask_index] * slopes).sum(axis=1)
        level = 1 + 0.1 * np.sin(plan.item_index)
        noise = np.random.default_rng(self.rows).normal(0, 0.01, len(plan))
        return Measurement(plan, level - lost + noise, slopes if plan.gradients else None)


@pytest.mark.parametrize("method", ALONE)
def test_what_every_task_needs_comes_first_only_without_a_contrast(method):
    """Without a contrast the shared component ranks first, and with it the specific one."""
    alone = searches.run(make_search(method, problem()), Model().run)
    assert alone.order[0] == SHARED
    weighed = searches.run(make_search(method, problem(), contrast=1.0), Model().run)
    assert weighed.order[0] == OWN
    assert weighed.options["contrast"] == 1.0
    assert weighed.effects[OWN] < weighed.effects[SHARED]


@pytest.mark.parametrize("method", ["coar", "cs-fresh", "gradient-masked"])
def test_a_budget_pays_for_partners_too(method):
    """The budget includes the rows of partners and is not exceeded."""
    model = Model()
    searches.run(make_search(method, problem(rows=1200), contrast=1.0), model.run)
    assert 700 < model.rows <= 1200


def test_effects_are_those_of_the_task_less_those_of_the_others():
    """The specific component keeps its effect of -0.3, and that of the shared one is subtracted."""
    ranking = searches.run(make_search("one-shot", problem(), contrast=1.0), Model().run)
    assert ranking.effects[OWN] == pytest.approx(-0.3, abs=0.01)
    assert ranking.effects[SHARED] == pytest.approx(0.0, abs=0.01)
    half = searches.run(make_search("one-shot", problem(), contrast=0.5), Model().run)
    assert half.effects[SHARED] == pytest.approx(-0.3, abs=0.01)


def test_partners_are_the_same_under_every_mask():
    """An item has the same partner under every mask, so that differences between items cancel."""
    model = Model()
    searches.run(make_search("one-shot", problem(), contrast=1.0), model.run)
    pairs = {}
    for plan in model.plans:
        if plan.item_index.min() >= 100:
            continue  # intact responses of the partners
        half = len(plan) // 2
        np.testing.assert_array_equal(plan.mask_index[:half], plan.mask_index[half:])
        for item, partner in zip(plan.item_index[:half], plan.item_index[half:], strict=True):
            assert pairs.setdefault(item, partner) == partner
    assert len(set(pairs.values())) == 20


def test_no_contrast_is_the_method_itself():
    """A contrast of 0 gives equal effects with equal rows."""
    first, second = Model(), Model()
    plain = searches.run(make_search("coar", problem()), first.run)
    none = searches.run(make_search("coar", problem(), contrast=0), second.run)
    np.testing.assert_array_equal(plain.effects, none.effects)
    assert first.rows == second.rows


def test_what_makes_no_sense_is_refused():
    """A contrast without other tasks and a negative contrast are refused."""
    with pytest.raises(BadInput, match="there are none: name some in `others`"):
        make_search("coar", problem(others=False), contrast=1.0)
    with pytest.raises(BadInput, match="contrast must be 0 or more"):
        make_search("coar", problem(), contrast=-1)
