"""cs-tuned searches the settings of compressed sensing like the paper."""

import numpy as np
import pytest

from broca import searches
from broca.errors import BadInput
from broca.searches import Problem, make_search
from broca.testing import planted_problem

ITEMS = np.arange(5)


def solve(rows=None, **options):
    """Runs cs-tuned on a planted problem; returns ranking, plans and the problem."""
    planted = planted_problem(components=100, effect=0.15, noise=0.05, seed=1)
    plans = []

    def execute(plan):
        plans.append(plan)
        return planted.run(plan)

    problem = Problem(100, ITEMS, 5, rows, 0)
    return searches.run(make_search("cs-tuned", problem, **options), execute), plans, planted


@pytest.mark.parametrize("design", ["stratified", "bernoulli"])
def test_every_row_that_tuning_takes_is_measured(design):
    """Rows are those of the intact model, 400 masks of four sparsities, and all selections."""
    ranking, plans, planted = solve(design=design)
    assert set(ranking.selected) == set(planted.planted)
    assert [len(plan.masks) for plan in plans[:5]] == [1, 400, 400, 400, 400]
    assert ranking.options["settings"] == 16
    assert len(plans[5].masks) == ranking.options["selections"] <= 16
    assert plans[5].masks.sum(axis=1).max() <= 5


def test_keeps_the_setting_whose_selection_hurts_most():
    """The kept selection is that with the lowest mean response under its joint ablation."""
    ranking, plans, planted = solve()
    means = planted.run(plans[-1]).mask_means()
    intact = planted.run(plans[0]).mask_means()[0]
    assert ranking.options["joint_drop"] == pytest.approx(intact - means.min())
    best = plans[-1].masks[int(np.argmin(means))]
    assert set(ranking.selected) == set(np.flatnonzero(best).tolist())
    assert ranking.options["sparsity"] in (0.01, 0.02, 0.05, 0.1)
    assert ranking.options["masks"] in (100, 200, 300, 400)


def test_a_budget_shrinks_the_numbers_of_masks_together():
    """The budget is not exceeded, and all settings are still compared."""
    ranking, plans, _ = solve(rows=5000)
    assert sum(len(plan) for plan in plans) <= 5000
    assert ranking.options["settings"] == 16
    assert ranking.options["masks"] < 400


@pytest.mark.parametrize(
    ("options", "message"),
    [({"design": "stratfied"}, "did you mean 'stratified'"), ({"recovery": "x"}, "unknown")],
)
def test_bad_options_are_refused(options, message):
    """The options are refused before anything is measured."""
    with pytest.raises(BadInput, match=message):
        make_search("cs-tuned", Problem(20, ITEMS, 2, None, 0), **options)
