"""The rule for universal components, against the rule computed by hand."""

import numpy as np
from effect_matrices import effects_of, matrix

from broca.atlases import contrasts
from broca.verification.effects import universal


def test_universal_hurts_most_tasks():
    """Four harmed tasks of five make a component universal; small or uncertain effects do not."""
    cells = {(task, 0): -0.3 for task in (0, 1, 2, 3)} | {(task, 1): -0.9 for task in (2, 3)}
    cells |= {(task, 2): -0.04 for task in range(5)} | {(task, 3): -0.1 for task in range(5)}
    measured = matrix(effects_of(cells))
    assert universal(measured) == [0, 3]
    unsure = matrix(effects_of(cells), spread=0.1)
    assert universal(unsure) == [0]


def test_several_tasks_of_one_capability_are_no_majority():
    """Three harmed tasks of four do not count where they are one of two capabilities."""
    effects = np.zeros((4, 10))
    effects[:3, 2], effects[[0, 1, 3], 5] = -0.3, -0.2
    assert universal(matrix(effects, capabilities=("a", "a", "a", "b"))) == [5]


def test_what_one_capability_needs_far_more_is_its_own():
    """A component that harms one capability three times as much as the others is not universal."""
    effects = np.full((5, 4), -0.1)
    effects[:2, 1] = -0.3  # both tasks of sums
    effects[3, 2] = -0.3
    effects[:2, 3] = -0.19
    measured = matrix(effects)
    assert measured.hurts.all()
    assert universal(measured) == [3, 0]


def test_one_task_does_not_speak_for_its_capability():
    """A capability counts by the mean of its tasks, of which one may lose what the other gains."""
    effects = np.zeros((6, 3))
    effects[:, 0] = [-0.2, 0.2, -0.2, 0.2, -0.2, -0.2]
    effects[:, 1] = [-0.2, 0.0, -0.2, 0.0, -0.2, -0.2]
    measured = matrix(effects, capabilities=("a", "a", "b", "b", "c", "d"))
    assert (measured.hurts.sum(axis=0) == [4, 4, 0]).all()
    assert universal(measured) == [1]


def test_one_capability_has_nothing_universal():
    """A matrix with one usable capability has no universal component."""
    effects = np.full((5, 3), -0.3)
    assert universal(matrix(effects, capabilities=("sums",) * 5)) == []
    usable = [True, True, False, False, False]
    assert universal(matrix(effects, usable=usable)) == []


def test_rule_by_hand_on_random_matrices():
    """On random matrices the rule equals its three conditions, computed for each component."""
    rng = np.random.default_rng(1)
    universal_count = 0
    for seed in range(20):
        measured = matrix(rng.uniform(-0.4, 0.02, (5, 12)), seed=seed)
        spread = measured.resampled.std(axis=0)
        expected = set()
        for column in range(12):
            effects = measured.effects[:, column]
            hurt = (effects + 1.645 * spread[:, column] < 0) & (effects <= -0.05)
            sums = measured.resampled[:, :2, column].mean(axis=1).std()
            pooled = [effects[:2].mean(), *effects[2:]]
            sure = [pooled[0] + 1.645 * sums < 0, *(effects + 1.645 * spread[:, column] < 0)[2:]]
            reached = sum(s and value <= -0.05 for s, value in zip(sure, pooled, strict=True))
            others = sorted(pooled)[1:]
            if hurt.sum() >= 4 and reached >= 3 and np.mean(others) <= min(pooled) / 2:
                expected.add(column)
        assert set(universal(measured)) == expected
        universal_count += len(expected)
    assert 20 < universal_count < 200


def test_tasks_that_cannot_be_done_do_not_count():
    """Only usable tasks count, for the majority and as controls of a contrast."""
    cells = {(0, 0): -0.3, (2, 0): -0.3, (3, 1): -0.3, (4, 1): -0.3, (0, 1): -0.3}
    measured = matrix(effects_of(cells), usable=[True, False, True, False, True])
    assert universal(measured) == [0, 1]
    assert not measured.hurts[[1, 3]].any()
    chosen = contrasts(measured, 5)
    assert chosen[3].selected == ()
    assert set(chosen[0].controls) == {2, 4}
