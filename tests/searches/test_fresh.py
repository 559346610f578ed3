"""cs-fresh uses a new mask for every row."""

import numpy as np
import pytest

from broca import designs, searches
from broca.errors import BadInput
from broca.measurement import Measurement
from broca.searches import Problem, make_search
from broca.searches.fresh import items_per_mask
from broca.testing import planted_problem


@pytest.mark.parametrize("per_mask", [1, 3])
def test_design_is_balanced_over_components_and_items(per_mask):
    """Counts differ by at most one, masks have equal sizes, and no mask meets an item twice."""
    masks, index, met = designs.fresh(500, 96, items=30, size=7, items_per_mask=per_mask, seed=3)
    assert (masks.sum(axis=1) == 7).all()
    assert np.ptp(masks.sum(axis=0)) <= 1
    assert np.ptp(np.bincount(met, minlength=30)) <= 1
    assert len(index) == len(met) == 500
    assert len(masks) == -(-500 // per_mask)
    assert len(set(zip(index.tolist(), met.tolist(), strict=True))) == 500


def test_items_do_not_go_with_components():
    """Items and components are paired at random: every count is near its mean."""
    masks, index, met = designs.fresh(6000, 20, items=10, size=4, seed=0)
    table = np.zeros((10, 20))
    np.add.at(table, met, masks[index].astype(float))
    assert abs(table - 120).max() < 5 * np.sqrt(120)


@pytest.mark.parametrize(("size", "per_mask"), [(0, 1), (9, 1), (2, 0), (2, 6)])
def test_impossible_designs_are_refused(size, per_mask):
    """A mask must ablate 1 to all components and be used on 1 to all items."""
    with pytest.raises(BadInput, match="a mask"):
        designs.fresh(10, 8, items=5, size=size, items_per_mask=per_mask, seed=0)


def test_difficulty_of_items_does_not_matter():
    """Items are fixed effects, so that items of different difficulty give the same result."""
    planted = planted_problem(components=60, effect=0.2, noise=0.05, baseline=5.0, seed=1)
    hard = np.random.default_rng(0).normal(0, 1, 50)

    def run_uneven(plan):
        return Measurement(plan, planted.run(plan).responses + hard[plan.item_index])

    problem = Problem(60, np.arange(50), 5, None, 0)
    even, uneven = (
        searches.run(make_search("cs-fresh", problem), execute)
        for execute in (planted.run, run_uneven)
    )
    assert set(uneven.selected) == set(planted.planted)
    np.testing.assert_allclose(uneven.effects, even.effects, atol=1e-9)


def test_finds_with_few_rows_what_crossed_masks_do_not():
    """600 rows on 50 noisy items suffice for cs-fresh and not for cs-stratified."""
    planted = planted_problem(components=96, effect=0.3, noise=0.2, seed=2)
    problem = Problem(96, np.arange(50), 5, 600, 0)
    hits = {
        method: len(
            set(searches.run(make_search(method, problem), planted.run).selected)
            & set(planted.planted)
        )
        for method in ("cs-fresh", "cs-stratified")
    }
    assert hits["cs-fresh"] == 5
    assert hits["cs-stratified"] < 4


def test_pilot_takes_no_size_that_destroys_the_response():
    """If more than six ablated components destroy the response, masks are small."""

    def fragile(plan):
        size = plan.masks.sum(axis=1)
        score = np.where(size > 6, 0.0, 1.0 - 0.5 * plan.masks[:, 2])
        return Measurement(plan, score[plan.mask_index])

    problem = Problem(60, np.arange(30), 3, 1500, 0)
    ranking = searches.run(make_search("cs-fresh", problem), fragile)
    assert ranking.selected == (2,)
    assert ranking.options["sparsity"] <= 0.1


def test_items_of_a_mask_follow_the_two_stage_rule():
    """The number is sqrt(variance within / variance between * prefix / item), and at least one."""
    rng = np.random.default_rng(0)
    drops = rng.normal(0, 1, (4000, 1)) + rng.normal(0, 2, (4000, 2))
    assert items_per_mask(drops, prefix=900, item=100) == 6  # sqrt(4 / 1 * 9)
    assert items_per_mask(drops, prefix=0, item=100) == 1
    assert items_per_mask(np.zeros((4, 2)), prefix=900, item=100) == 1


def test_shared_prefixes_put_several_items_on_a_mask():
    """Masks are shared by several items within the budget, and planted components are found."""
    planted = planted_problem(components=60, effect=0.3, noise=0.3, seed=4)
    problem = Problem(60, np.arange(50), 5, 2000, 0, prefix_tokens=800, item_tokens=50)
    spent = 0

    def execute(plan):
        nonlocal spent
        spent += len(plan)
        return planted.run(plan)

    ranking = searches.run(make_search("cs-fresh", problem), execute)
    assert set(ranking.selected) == set(planted.planted)
    assert ranking.options["items_per_mask"] > 1
    assert spent == 2000


def test_asks_for_probabilities_where_there_are_some():
    """Without probabilities, rows have the run's own response."""
    for continuous, response in ((True, "probability"), (False, None)):
        problem = Problem(20, np.arange(9), 2, 300, 0, continuous=continuous)
        assert make_search("cs-fresh", problem).ask().response == response


def test_both_responses_are_joined():
    """Every row is measured as probability and as metric, and the response is their mean."""
    planted = planted_problem(components=20, effect=0.3, noise=0.05, baseline=5.0, seed=5)
    problem = Problem(20, np.arange(30), 5, 800, 0, continuous=True)
    rows = {"probability": 0, "accuracy": 0}

    def execute(plan):
        rows[plan.response] += len(plan)
        # responses of the metric are half of the probabilities
        share = 1.0 if plan.response == "probability" else 0.5
        return Measurement(plan, share * planted.run(plan).responses)

    def ranking(*, with_metric):
        return searches.run(make_search("cs-fresh", problem, both=with_metric), execute)

    joined = ranking(with_metric=True)
    assert rows["probability"] == rows["accuracy"] == 400
    assert joined.options["both"]
    single = ranking(with_metric=False)
    assert rows["probability"] == 1200
    assert set(joined.selected) == set(single.selected) == set(planted.planted)
    strong = list(planted.planted)
    np.testing.assert_allclose(joined.effects[strong], 0.75 * single.effects[strong], rtol=0.15)


def test_both_is_refused_where_it_makes_no_sense():
    """`both` needs probabilities, twice the rows and a Boolean."""
    with pytest.raises(BadInput, match="combines the probability with the task's metric"):
        make_search("cs-fresh", Problem(20, np.arange(9), 2, 300, 0), both=True)
    problem = Problem(20, np.arange(9), 2, 100, 0, continuous=True)
    with pytest.raises(BadInput, match="needs 120 at least"):
        make_search("cs-fresh", problem, both=True)
    with pytest.raises(BadInput, match="both must be true or false"):
        make_search("cs-fresh", problem, both="yes")
