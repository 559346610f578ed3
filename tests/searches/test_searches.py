"""Every search on planted problems, and the contract they share."""

import numpy as np
import pytest

from broca import searches
from broca.errors import BadInput, UnknownName
from broca.measurement import Measurement, Plan
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
    """Constant responses are no evidence: nothing fills up the list, and a reason is given."""
    problem = Problem(30, ITEMS, 5, None, 0, differentiable=True)

    def constant(plan):
        gradients = np.zeros((len(plan), 30), dtype=np.float32) if plan.gradients else None
        return Measurement(plan, np.ones(len(plan)), gradients)

    ranking = searches.run(make_search(method, problem), constant)
    assert ranking.selected == ()
    assert ranking.reason


@pytest.mark.parametrize("method", METHODS)
def test_selects_fewer_than_k_rather_than_fill_up(method):
    """With one component that matters and no noise, no other is selected."""
    planted = planted_problem(components=30, planted=1, noise=0.0, seed=2)
    planted.effects[[c for c in range(30) if c not in planted.planted]] = 0.0
    ranking, _ = solve(method, planted)
    assert ranking.selected == planted.planted


@pytest.mark.parametrize("method", METHODS)
def test_row_budget_is_kept(method):
    """No search spends more rows than it may."""
    planted = planted_problem(components=30, seed=3)
    for rows in (300, 433, 1000):
        _, spent = solve(method, planted, rows=rows, k=3)
        assert 0 < spent <= rows


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_result(method):
    """A search repeats itself."""
    planted = planted_problem(components=40, seed=4)
    first, _ = solve(method, planted, seed=9)
    second, _ = solve(method, planted, seed=9)
    np.testing.assert_array_equal(first.effects, second.effects)
    assert first.order == second.order


@pytest.mark.parametrize("method", METHODS)
def test_order_holds_every_column_once_and_begins_with_the_selection(method):
    """The ranking is a permutation."""
    planted = planted_problem(components=40, seed=5)
    ranking, _ = solve(method, planted)
    assert sorted(ranking.order) == list(range(40))
    assert ranking.order[: len(ranking.selected)] == ranking.selected


@pytest.mark.parametrize("method", METHODS)
def test_budget_too_small_for_the_method_is_refused(method):
    """The message says how many rows would do."""
    with pytest.raises(BadInput, match=r"`rows` 10 is too few"):
        make_search(method, Problem(30, ITEMS, 5, 10, 0, differentiable=True))


def test_one_shot_effects_are_the_differences_of_means():
    """Against a loop written out by hand."""
    planted = planted_problem(components=12, seed=6)
    ranking, spent = solve("one-shot", planted)
    masks = np.vstack([np.zeros((1, 12), dtype=bool), np.eye(12, dtype=bool)])
    means = [planted.run(Plan.crossed(mask[None], ITEMS)).responses.mean() for mask in masks]
    np.testing.assert_allclose(ranking.effects, np.array(means[1:]) - means[0])
    assert spent == 13 * 20


def test_greedy_sees_what_a_single_sweep_cannot():
    """Of two redundant components either may go; greedy finds the second once the first is out."""

    def redundant(plan):
        both = plan.masks[:, 3] & plan.masks[:, 8]
        score = 1.0 - 0.1 * plan.masks[:, 3] - 0.8 * both
        return Measurement(plan, score[plan.mask_index])

    problem = Problem(10, ITEMS, 2, None, 0)
    assert searches.run(make_search("greedy", problem), redundant).selected == (3, 8)
    assert searches.run(make_search("one-shot", problem), redundant).selected == (3,)


def test_greedy_costs_k_sweeps():
    """The intact model once, then one mask fewer every round."""
    planted = planted_problem(components=30, noise=0.01, seed=7)
    _, spent = solve("greedy", planted, k=3)
    assert spent == (1 + 30 + 29 + 28) * 20


@pytest.mark.parametrize("method", ["cs-bernoulli", "cs-stratified"])
def test_compressed_sensing_can_fix_the_intercept(method):
    """Eq. (1) of the paper; the record says which was used."""
    planted = planted_problem(components=40, effect=0.15, noise=0.02, seed=8)
    ranking, _ = solve(method, planted, intercept="baseline", sparsity=0.08)
    assert set(ranking.selected) == set(planted.planted)
    assert ranking.options["intercept"] == "baseline"
    assert ranking.options["sparsity"] == 0.08


def test_compressed_sensing_defaults_to_200_masks():
    """200 masks and the intact one, on every item."""
    _, spent = solve("cs-stratified", planted_problem(components=40, seed=9))
    assert spent == 201 * 20


def test_unknown_method_is_refused_with_the_nearest_name():
    """A typo is answered with the name that was meant."""
    with pytest.raises(UnknownName, match="did you mean 'greedy'"):
        make_search("greeedy", Problem(4, ITEMS, 1, None, 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsty": 0.1}, "did you mean 'sparsity'"),
        ({"design": "x"}, "no option 'design'"),
        ({"intercept": "none"}, "'fitted' or 'baseline'"),
        ({"sparsity": 2}, "between 0 and 1"),
    ],
)
def test_bad_option_is_refused(options, message):
    """Unknown settings and values are named."""
    with pytest.raises(BadInput, match=message):
        make_search("cs-stratified", Problem(40, ITEMS, 1, None, 0), **options)
