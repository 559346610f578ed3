"""Problems within a budget, and the selection by effects."""

import numpy as np
import pytest
from scipy import stats

from broca.errors import BadInput
from broca.searches import Problem
from broca.searches.problem import Ranking, harmful, mean_with_interval


def test_a_budget_pays_for_items():
    """A budget limits the number of items, and one that is too small is refused."""
    problem = Problem(4, np.arange(20), 2, 60, 0)
    assert len(set(problem.affordable(6, fewest=4).tolist())) == 10
    assert problem.affordable(3).tolist() == list(range(20))
    for cost, fewest, needed in ((20, 4, 80), (61, 1, 61)):
        with pytest.raises(BadInput, match=f"60 is too few: the search alone needs {needed}"):
            problem.affordable(cost, fewest=fewest)
    assert len(Problem(4, np.arange(20), 2, None, 0).affordable(20)) == 20


def test_intervals_are_students():
    """Means and intervals equal those of SciPy; a single sample has no interval."""
    samples = np.random.default_rng(0).normal(size=(9, 3))
    mean, intervals = mean_with_interval(samples)
    low, high = stats.t.interval(0.9, 8, loc=samples.mean(axis=0), scale=stats.sem(samples))
    np.testing.assert_allclose(intervals, np.stack([low, high], axis=1))
    np.testing.assert_allclose(mean, samples.mean(axis=0))
    assert np.isnan(mean_with_interval(samples[:1])[1]).all()


def test_only_sure_harm_is_selected_and_leads_the_order():
    """Uncertain, tiny and positive effects are left out, and the selection leads the order."""
    effects = np.array([-0.5, -0.9, -0.001, 0.3, -0.4])
    intervals = effects[:, None] + np.array([[-0.1, 0.1]])
    intervals[1, 1] = 0.05
    intervals[2, 1] = -0.0005
    selected = harmful(effects, intervals, 5)
    assert selected == (0, 4)
    ranking = Ranking.of(effects, selected, "nothing", {})
    assert ranking.order == (0, 4, 1, 2, 3)
    assert ranking.reason == ""
    assert harmful(np.full(3, -1e-16), np.full((3, 2), np.nan), 3) == ()  # rounding
