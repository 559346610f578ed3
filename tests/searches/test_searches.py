"""All searches on planted problems, and the requirements that they share."""

import numpy as np
import pytest

from broca import searches
from broca.errors import BadInput, UnknownName
from broca.measurement import Measurement
from broca.searches import METHODS, Problem, make_search
from broca.testing import planted_problem

ITEMS = np.arange(20)


def solve(method, planted, *, k=5, rows=None, items=ITEMS, seed=0, **options):
    """Runs a search on a planted problem and counts its rows."""
    problem = Problem(len(planted.effects), items, k, rows, seed, differentiable=True)
    spent = 0

    def execute(plan):
        nonlocal spent
        spent += plan.cost
        return planted.run(plan)

    ranking = searches.run(make_search(method, problem, **options), execute)
    return ranking, spent


@pytest.mark.parametrize("method", METHODS)
def test_finds_the_planted_components(method):
    """Each method selects exactly the planted columns of an additive problem."""
    planted = planted_problem(components=60, effect=0.15, noise=0.05, seed=1)
    ranking, _ = solve(method, planted)
    assert set(ranking.selected) == set(planted.planted)
    assert not ranking.reason


@pytest.mark.parametrize("method", METHODS)
def test_selects_nothing_where_nothing_responds(method):
    """Constant responses give no selection and a reason."""
    problem = Problem(30, ITEMS, 5, None, 0, differentiable=True)

    def constant(plan):
        gradients = np.zeros((len(plan), 30), dtype=np.float32) if plan.gradients else None
        return Measurement(plan, np.ones(len(plan)), gradients)

    ranking = searches.run(make_search(method, problem), constant)
    assert ranking.selected == ()
    assert ranking.reason


@pytest.mark.parametrize("method", METHODS)
def test_selects_fewer_than_k_rather_than_fill_up(method):
    """If a single component has an effect, it alone is selected."""
    planted = planted_problem(components=30, planted=1, noise=0.0, seed=2)
    planted.effects[[c for c in range(30) if c not in planted.planted]] = 0.0
    ranking, _ = solve(method, planted)
    assert ranking.selected == planted.planted


@pytest.mark.parametrize("method", METHODS)
def test_row_budget_is_kept(method):
    """No search exceeds its budget."""
    planted = planted_problem(components=30, seed=3)
    for rows in (300, 433, 1000):
        _, spent = solve(method, planted, rows=rows, k=3)
        assert 0 < spent <= rows


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_result(method):
    """The seed determines effects and order."""
    planted = planted_problem(components=40, seed=4)
    first, _ = solve(method, planted, seed=9)
    second, _ = solve(method, planted, seed=9)
    np.testing.assert_array_equal(first.effects, second.effects)
    assert first.order == second.order


@pytest.mark.parametrize("method", METHODS)
def test_order_holds_every_column_once_and_begins_with_the_selection(method):
    """The order is a permutation that starts with the selection."""
    planted = planted_problem(components=40, seed=5)
    ranking, _ = solve(method, planted)
    assert sorted(ranking.order) == list(range(40))
    assert ranking.order[: len(ranking.selected)] == ranking.selected


@pytest.mark.parametrize("method", METHODS)
def test_budget_too_small_for_the_method_is_refused(method):
    """The message says that the rows are too few."""
    with pytest.raises(BadInput, match=r"`rows` 10 is too few"):
        make_search(method, Problem(30, ITEMS, 5, 10, 0, differentiable=True))


def test_unknown_method_is_refused_with_the_nearest_name():
    """The message suggests the nearest name."""
    with pytest.raises(UnknownName, match="did you mean 'greedy'"):
        make_search("greeedy", Problem(4, ITEMS, 1, None, 0))


@pytest.mark.parametrize("components", [2, 7, 16])
@pytest.mark.parametrize("method", METHODS)
def test_no_default_refuses_a_small_model(method, components):
    """A component that costs half the response ranks first in models of few components."""
    problem = Problem(
        components, ITEMS, 5, None, 0, confirm=ITEMS + 20, continuous=True, differentiable=True
    )
    slopes = np.zeros(components, dtype=np.float32)
    slopes[0] = -0.5

    def execute(plan):
        noise = np.random.default_rng(len(plan)).normal(0, 0.05, len(plan))
        responses = 1 + plan.masks[plan.mask_index] @ slopes.astype(float) + noise
        slope = -np.tile(slopes, (len(plan), 1))  # the slope of opening a gate
        return Measurement(plan, responses, slope if plan.gradients else None)

    assert searches.run(make_search(method, problem), execute).order[0] == 0
