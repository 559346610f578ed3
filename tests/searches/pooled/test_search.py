"""Pooled on simulated tasks: small effects, backups, contrast and the three answers."""

from statistics import NormalDist

import numpy as np
import pytest
from task_problems import problem_of, searched

from broca.measurement import Measurement
from broca.results.localization import AnswerInfo

COUNT = 40


class Tasks:
    """Several tasks over one model; `chances[t](mask)` is the probability of success in task `t`.

    Items of task `t` start at `1000 * t`. An item has the same difficulty under every mask.
    """

    def __init__(self, *chances, components=COUNT, seed=0):
        self.chances, self.components, self.seed, self.rows = chances, components, seed, 0

    def problem(self, *, continuous=True, **options):
        """Returns the problem of the first task against the others."""
        return problem_of(
            len(self.chances), self.components, items=100, apart=1000, seed=self.seed,
            continuous=continuous, **options,
        )  # fmt: skip

    def run(self, plan):
        """Returns probabilities, or right and wrong answers for accuracy."""
        self.rows += plan.cost
        responses = np.empty(len(plan))
        for row, (mask, item) in enumerate(zip(plan.mask_index, plan.item_index, strict=True)):
            chance = self.chances[item // 1000](plan.masks[mask])
            hard = np.random.default_rng([self.seed, int(item)]).random()
            if plan.response == "probability":  # nearly 0 or 1
                responses[row] = 1 / (1 + np.exp(-20 * (chance - hard)))
            else:
                responses[row] = float(hard < chance)
        return Measurement(plan, responses)

    def solve(self, *, options=None, **problem):
        """Returns the ranking of pooled."""
        return searched("pooled", self.run, self.problem(**problem), **(options or {}))[0]


def harmed_by(columns, loss, base=0.9):
    """Returns a task that loses `loss` for every ablated column."""
    return lambda mask: max(0.0, base - loss * int(mask[list(columns)].sum()))


@pytest.mark.long
def test_small_effects_of_many_components_are_found():
    """At least four of five selected are among the ten of forty that cost 0.04 each."""
    tasks = Tasks(harmed_by(range(10), 0.04), harmed_by((20, 21), 0.1))
    ranking = tasks.solve(rows=4000)
    assert 3900 < tasks.rows <= 4000
    assert ranking.answer == AnswerInfo("found")
    assert sum(column < 10 for column in ranking.selected) >= 4


@pytest.mark.long
def test_leaves_out_what_every_task_needs():
    """A component that harms all tasks most is selected only without a contrast."""
    shared = harmed_by((30,), 0.5)
    tasks = Tasks(lambda mask: max(0.0, 0.9 - 0.5 * mask[30] - 0.2 * mask[3]), shared, shared)
    selected = tasks.solve(rows=2000).selected
    assert selected[0] == 3
    assert 30 not in selected
    assert 30 in tasks.solve(rows=1500, options={"contrast": 0.0}).selected


def test_what_costs_all_alone_is_needed_though_it_adds_nothing():
    """All three components that each destroy the task are selected, although two add nothing."""
    tasks = Tasks(lambda mask: 0.05 if mask[[4, 8, 15]].any() else 0.95, seed=3)
    assert set(tasks.solve(rows=1200).selected) == {4, 8, 15}


@pytest.mark.long
def test_sees_components_that_matter_only_together():
    """Two backups are selected although either one alone costs almost nothing."""

    def pair(mask):
        return 0.1 if mask[5] and mask[20] else 0.9 - 0.04 * (mask[5] + mask[20])

    ranking = Tasks(pair, harmed_by((9,), 0.4), seed=2).solve(rows=3000)
    assert {5, 20} <= set(ranking.selected)


@pytest.mark.long
def test_goes_on_where_rows_do_not_tell_and_says_how_many_would():
    """Without a budget, up to four times the default rows give a bound or the rows needed."""
    tasks = Tasks(lambda mask: 0.8, harmed_by((9,), 0.2), components=20, seed=4)
    ranking = tasks.solve()
    assert ranking.selected == ()
    assert ranking.options["rows"] == tasks.rows <= 4 * 1600
    assert ranking.reason
    if ranking.answer.says == "nothing":
        assert ranking.answer.bound <= 0.05
    else:
        assert ranking.answer.rows_needed > tasks.rows > 1600


@pytest.mark.long
def test_what_harms_all_tasks_alike_is_seldom_found():
    """At most one search in six selects components that harm all tasks equally."""
    shared = harmed_by((4, 8, 15, 16), 0.2)
    findings = [
        Tasks(shared, shared, shared, seed=seed).solve(rows=2400).answer.says == "found"
        for seed in range(6)
    ]
    assert sum(findings) <= 1


@pytest.mark.long
def test_more_components_than_have_coefficients():
    """The search works with 300 components."""
    tasks = Tasks(harmed_by((1,), 0.8), harmed_by((2,), 0.5), components=300, seed=7)
    assert tasks.solve(rows=1500, k=3).selected[0] == 1


@pytest.mark.long
def test_works_without_other_tasks_and_without_probabilities():
    """Two components are found without other tasks, by the task's accuracy."""
    ranking = Tasks(harmed_by((1, 22), 0.35), seed=8).solve(rows=1500, continuous=False)
    assert {1, 22} <= set(ranking.selected)


@pytest.mark.long
def test_members_that_lose_only_together_are_found():
    """A set of five is found although no three of its members cost the task a point.

    The loss has a threshold, which the five members cross, and masks of many components too.
    """
    needed = np.zeros(COUNT, dtype=bool)
    needed[[2, 9, 17, 23, 31]] = True

    def chance(mask):
        lost = mask[needed].sum() + 0.15 * mask[~needed].sum()
        return 0.95 - 0.6 * NormalDist().cdf((lost - 4.4) / 0.5)

    assert chance(needed) < 0.45 < 0.94 < chance(needed & (np.arange(COUNT) < 20))
    ranking = Tasks(chance, lambda mask: 0.9, seed=1).solve(rows=4000)
    assert set(ranking.selected) == set(np.flatnonzero(needed))
    assert ranking.answer == AnswerInfo("found")


@pytest.mark.long
@pytest.mark.parametrize(("threshold", "says"), [(40, "nothing"), (10, "not enough rows")])
def test_nothing_is_not_said_where_only_large_masks_lose(threshold, says):
    """Pairs that lose nothing bound the worth of small sets only if large masks lose nothing too.

    No set of five of the 40 components costs a point: the task is lost with about `threshold`
    ablated components, whichever they are.
    """

    def chance(mask):
        return 0.95 - 0.6 * NormalDist().cdf((mask.sum() - threshold) / 1.2)

    ranking = Tasks(chance, lambda mask: 0.9, seed=0).solve(rows=4000)
    assert ranking.selected == ()
    assert ranking.answer.says == says
    assert (ranking.answer.bound is None) == (says == "not enough rows")
