"""Uncertainty and abstention of searches by random masks."""

import numpy as np
import pytest

from broca import searches
from broca.measurement import Measurement
from broca.searches import Problem, make_search
from broca.searches.regression import NO_DISCOVERY, NO_EFFECT
from broca.testing import planted_problem

CS = ["cs-bernoulli", "cs-stratified", "cs-fresh", "cs-tuned"]


@pytest.mark.parametrize("method", CS)
def test_every_effect_has_an_interval_a_frequency_and_a_rate(method):
    """Planted components have intervals, frequencies and q-values, and effects are additive."""
    planted = planted_problem(components=60, effect=0.2, noise=0.05, seed=1)
    problem = Problem(60, np.arange(20), 5, None, 0)
    ranking = searches.run(make_search(method, problem, resamples=20), planted.run)
    columns = list(planted.planted)
    assert (ranking.q_values[columns] <= 0.1).all()
    assert (ranking.frequency[columns] >= 0.9).all()
    low, high = ranking.intervals[columns].T
    assert (low < ranking.effects[columns]).all()
    assert (high < 0).all()
    assert ranking.additivity.explained > 0.5
    assert not ranking.notes


@pytest.mark.parametrize("method", ["cs-stratified", "cs-fresh"])
def test_noise_is_no_finding(method):
    """In most searches of noise nothing is selected, and the reason is that chance suffices."""
    reasons = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        problem = Problem(40, np.arange(10), 5, 1200, seed)
        ranking = searches.run(
            make_search(method, problem, resamples=10),
            lambda plan, rng=rng: Measurement(plan, rng.normal(0.5, 0.2, len(plan))),
        )
        assert bool(ranking.selected) != bool(ranking.reason)
        reasons += [ranking.reason] if ranking.reason else []
    assert len(reasons) >= 6
    assert set(reasons) <= {NO_DISCOVERY, NO_EFFECT}


def test_few_masks_do_not_abstain_by_their_rough_p_values():
    """With 19 masks the selection stays, and a note says that it is not a discovery."""
    planted = planted_problem(components=40, effect=0.2, noise=0.3, seed=2)
    problem = Problem(40, np.arange(10), 5, 200, 0)
    ranking = searches.run(make_search("cs-stratified", problem, resamples=10), planted.run)
    assert ranking.selected
    assert any("not discoveries" in note for note in ranking.notes)


def test_resamples_can_be_left_out():
    """Without resamples, effects have no intervals."""
    planted = planted_problem(components=40, seed=2)
    problem = Problem(40, np.arange(10), 5, None, 0)
    ranking = searches.run(make_search("cs-stratified", problem, resamples=0), planted.run)
    assert ranking.intervals is None
    assert ranking.additivity is not None
