"""Methods that ablate chosen components: one-shot, greedy, COAR and co-ablation."""

import numpy as np
import pytest
from searches.test_searches import ITEMS, solve
from sklearn.linear_model import LinearRegression
from task_problems import rows_of, searched

from broca.measurement import Measurement, Plan
from broca.searches import Problem
from broca.testing import planted_problem


def scored(method, score, *, k=5, **options):
    """Returns the ranking on a score of masks `(masks, 12)`, and the number of rows."""

    def execute(plan):
        return Measurement(plan, score(plan.masks)[plan.mask_index].astype(float))

    problem = Problem(12, np.arange(10), k, None, 0)
    ranking, plans = searched(method, execute, problem, **options)
    return ranking, rows_of(plans)


def test_one_shot_effects_are_the_differences_of_means():
    """Effects equal the differences of a loop written out by hand."""
    planted = planted_problem(components=12, seed=6)
    ranking, spent = solve("one-shot", planted)
    masks = np.vstack([np.zeros((1, 12), dtype=bool), np.eye(12, dtype=bool)])
    means = [planted.run(Plan.crossed(mask[None], ITEMS)).responses.mean() for mask in masks]
    np.testing.assert_allclose(ranking.effects, np.array(means[1:]) - means[0])
    assert spent == 13 * 20


def test_greedy_sees_what_a_single_sweep_cannot():
    """Greedy selects a component that has an effect only after its substitute is ablated."""

    def redundant(masks):
        return 1.0 - 0.1 * masks[:, 3] - 0.8 * (masks[:, 3] & masks[:, 8])

    greedy, rows = scored("greedy", redundant, k=2)
    assert greedy.selected == (3, 8)
    assert scored("one-shot", redundant, k=2)[0].selected == (3,)
    assert rows == (1 + 12 + 11) * 10  # one mask fewer in every round


def test_coar_averages_the_regressions_of_items_on_masks_of_their_own():
    """Effects equal the mean of scikit-learn's regressions of each item, which needs others."""
    measured = []

    def execute(plan):
        rows = plan.masks[plan.mask_index]
        needed = rows[np.arange(len(rows)), plan.item_index]
        noise = np.random.default_rng(0).normal(0, 0.05, len(plan))
        measured.append(1 - 0.5 * rows[:, 5] - 0.3 * needed + noise)
        return Measurement(plan, measured[-1])

    ranking, (plan,) = searched("coar", execute, Problem(12, np.arange(3), 5, 600, 0), share=0.2)
    rows, items, (responses,) = plan.masks[plan.mask_index], plan.item_index, measured
    fits = [
        LinearRegression().fit(rows[items == item], responses[items == item]) for item in range(3)
    ]
    expected = np.mean([fit.coef_ for fit in fits], axis=0)
    np.testing.assert_allclose(ranking.effects, expected, atol=1e-10)
    assert ranking.effects[5] == pytest.approx(-0.5, abs=0.05)
    assert ranking.selected[0] == 5
    table = plan.masks.reshape(3, 200, 12)
    assert not table[:, 0].any()  # the intact model
    assert table.any(axis=1).all()  # each component on each item
    assert (table[0] != table[1]).any()


def test_a_backup_grows_and_is_selected():
    """Component 8 has no effect alone and an effect of 0.6 once the leaders are ablated."""

    def backed_up(masks):
        return 1 - 0.1 * masks[:, 3] - 0.6 * (masks[:, 3] & masks[:, 8]) - 0.2 * masks[:, 5]

    ranking, rows = scored("co-ablation", backed_up)
    assert ranking.groups == {"leaders": (5, 3), "backups": (8,)}
    assert ranking.selected == (5, 3, 8)
    np.testing.assert_allclose(ranking.effects[[5, 3, 8, 0]], [-0.2, -0.1, -0.6, 0], atol=1e-12)
    assert rows == (1 + 12 + 1 + 10) * 10
