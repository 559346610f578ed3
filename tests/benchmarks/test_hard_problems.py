"""Hard planted problems: responses and gradients are those that their definition gives."""

from dataclasses import replace

import numpy as np
import pytest


@pytest.fixture
def hard_problem(script):
    """Makes a hard planted problem."""
    return script("hard_problems").hard_problem


def troubled(hard_problem, *, saturates):
    """Returns a problem with interacting pairs and components with one and two backups."""
    problem = hard_problem(components=8, planted=3, noise=0.0, seed=1)
    unplanted = [column for column in range(8) if column not in problem.planted]
    backups = np.full((8, 2), -1)
    backups[problem.planted[0], 0] = unplanted[0]
    backups[problem.planted[1]] = unplanted[1:3]
    return replace(
        problem, pairs=np.array([problem.planted[:2], problem.planted[1:]]),
        pair_effects=np.array([-0.2, 0.1]), backups=backups, saturates=saturates,
    )  # fmt: skip


@pytest.mark.parametrize("saturates", [False, True])
@pytest.mark.parametrize("scale", [0.0, 0.3, 0.9])
def test_gradients_are_the_slopes_of_the_responses(hard_problem, saturates, scale):
    """The sum of gradients over a mask's components is the slope with respect to the scale."""
    problem = troubled(hard_problem, saturates=saturates)
    masks = np.random.default_rng(0).random((20, 8)) < 0.5
    slopes = (problem.gradients(masks, scale) * masks).sum(axis=1)
    step = 1e-6
    low, high = (problem.means(masks, at) for at in (scale - step, scale + step))
    np.testing.assert_allclose(slopes, (high - low) / (2 * step), atol=1e-7)


def test_a_group_is_lost_only_as_a_whole(hard_problem):
    """The effect appears only when a component and all its backups are ablated."""
    problem = hard_problem(components=20, noise=0.0, seed=3, redundant=2, redundancy=2)
    problem.effects[[column for column in range(20) if column not in problem.planted]] = 0.0
    assert (problem.backups[list(problem.planted[2:])] == -1).all()
    for member in problem.planted[:2]:
        group = [member, *problem.backups[member].tolist()]
        assert len(set(group)) == 3
        masks = np.zeros((len(group) + 1, 20), dtype=bool)
        masks[:, group] = True
        for row, spared in enumerate(group):
            masks[row, spared] = False
        means = problem.means(masks)
        np.testing.assert_allclose(means[:-1], problem.baseline)
        np.testing.assert_allclose(means[-1], problem.baseline + problem.effects[member])
