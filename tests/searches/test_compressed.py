"""Random masks and regressions: cs-bernoulli, cs-stratified, cs-fresh, cs-tuned."""

import numpy as np
import pytest
from searches.test_searches import solve
from task_problems import rows_of, searched

from broca.measurement import Measurement
from broca.searches import Problem
from broca.searches.compressed import NO_DISCOVERY, NO_EFFECT
from broca.searches.fresh import items_per_mask
from broca.testing import planted_problem

CS = ["cs-bernoulli", "cs-stratified", "cs-fresh", "cs-tuned"]


@pytest.mark.parametrize("method", CS)
def test_every_effect_has_an_interval_a_frequency_and_a_rate(method):
    """Planted components have intervals, frequencies and q-values, and effects are additive."""
    planted = planted_problem(components=60, effect=0.2, noise=0.05, seed=1)
    ranking, _ = solve(method, planted, resamples=20)
    columns = list(planted.planted)
    assert (ranking.q_values[columns] <= 0.1).all()
    assert (ranking.frequency[columns] >= 0.9).all()
    low, high = ranking.intervals[columns].T
    assert (low < ranking.effects[columns]).all()
    assert (high < 0).all()
    assert ranking.additivity.explained > 0.5
    assert not ranking.notes
    assert solve(method, planted, resamples=0)[0].frequency is None


@pytest.mark.long
@pytest.mark.parametrize("method", ["cs-stratified", "cs-fresh"])
def test_noise_is_no_finding(method):
    """In most searches of noise nothing is selected, as chance suffices, without resamples too."""
    reasons = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        problem = Problem(40, np.arange(10), 5, 1200, seed)

        def noise(plan, rng=rng):
            return Measurement(plan, rng.normal(0.5, 0.2, len(plan)))

        ranking, _ = searched(method, noise, problem, resamples=0)
        assert bool(ranking.selected) != bool(ranking.reason)
        reasons += [ranking.reason] if ranking.reason else []
    assert len(reasons) >= 6
    assert set(reasons) <= {NO_DISCOVERY, NO_EFFECT}


def test_few_masks_do_not_abstain_by_their_rough_p_values():
    """With nine masks the selection stays, and a note says that it may be due to chance."""
    planted = planted_problem(components=40, effect=0.2, noise=0.3, seed=2)
    ranking, _ = solve("cs-stratified", planted, rows=200, resamples=10)
    assert ranking.selected
    assert any("due to chance" in note for note in ranking.notes)


def test_compressed_sensing_can_fix_the_intercept():
    """The intercept is fixed at the baseline as in eq. (1); 200 masks and the intact model."""
    planted = planted_problem(components=40, effect=0.15, noise=0.02, seed=8)
    ranking, spent = solve("cs-stratified", planted, intercept="baseline", sparsity=0.08)
    assert set(ranking.selected) == set(planted.planted)
    assert spent == 201 * 20


def test_difficulty_of_items_does_not_matter():
    """Items are fixed effects, so that items of different difficulty give the same result."""
    planted = planted_problem(components=60, effect=0.2, noise=0.05, baseline=5.0, seed=1)
    hard = np.random.default_rng(0).normal(0, 1, 50)

    def run_uneven(plan):
        return Measurement(plan, planted.run(plan).responses + hard[plan.item_index])

    problem = Problem(60, np.arange(50), 5, None, 0)
    (even, _), (uneven, _) = (
        searched("cs-fresh", execute, problem) for execute in (planted.run, run_uneven)
    )
    assert set(uneven.selected) == set(planted.planted)
    np.testing.assert_allclose(uneven.effects, even.effects, atol=1e-9)


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
    ranking, plans = searched("cs-fresh", planted.run, problem)
    assert set(ranking.selected) == set(planted.planted)
    assert ranking.options["items_per_mask"] > 1
    assert rows_of(plans) == 2000


def test_tuning_keeps_the_setting_whose_selection_hurts_most():
    """Rows are those of the intact model, 400 masks of four sparsities, and all selections.

    The kept selection is that with the lowest mean response under its joint ablation.
    """
    planted = planted_problem(components=100, effect=0.15, noise=0.05, seed=1)
    problem = Problem(100, np.arange(5), 5, None, 0)
    ranking, plans = searched("cs-tuned", planted.run, problem, design="bernoulli")
    assert set(ranking.selected) == set(planted.planted)
    assert [len(plan.masks) for plan in plans[:5]] == [1, 400, 400, 400, 400]
    assert ranking.options["settings"] == 16
    assert len(plans[5].masks) == ranking.options["selections"] <= 16
    means = planted.run(plans[5]).mask_means()
    intact = planted.run(plans[0]).mask_means()[0]
    assert ranking.options["joint_drop"] == pytest.approx(intact - means.min())
    best = plans[5].masks[int(np.argmin(means))]
    assert set(ranking.selected) == set(np.flatnonzero(best).tolist())
