"""Greedy finds redundant components and costs k sweeps."""

from searches.test_searches import ITEMS, solve

from broca import searches
from broca.measurement import Measurement
from broca.searches import Problem, make_search
from broca.testing import planted_problem


def test_greedy_sees_what_a_single_sweep_cannot():
    """Greedy selects a component that has an effect only after its substitute is ablated."""

    def redundant(plan):
        pair_ablated = plan.masks[:, 3] & plan.masks[:, 8]
        score = 1.0 - 0.1 * plan.masks[:, 3] - 0.8 * pair_ablated
        return Measurement(plan, score[plan.mask_index])

    problem = Problem(10, ITEMS, 2, None, 0)
    assert searches.run(make_search("greedy", problem), redundant).selected == (3, 8)
    assert searches.run(make_search("one-shot", problem), redundant).selected == (3,)


def test_greedy_costs_k_sweeps():
    """Rows are the intact model and one mask fewer in every round."""
    planted = planted_problem(components=30, noise=0.01, seed=7)
    _, spent = solve("greedy", planted, k=3)
    assert spent == (1 + 30 + 29 + 28) * 20
