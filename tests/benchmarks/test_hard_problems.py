"""Hard planted problems: responses and gradients are those that their definition gives."""

from dataclasses import replace

import numpy as np
import pytest

from broca.measurement import Plan


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


def test_a_gradient_of_an_open_gate_is_what_closing_it_costs(hard_problem):
    """The response is linear in each gate, so its gradient is the loss by closing the gate."""
    problem = troubled(hard_problem, saturates=False)
    masks = np.random.default_rng(1).random((10, 8)) < 0.2
    gradients = problem.gradients(masks)
    for column in range(8):
        closed, opened = masks.copy(), masks.copy()
        closed[:, column], opened[:, column] = True, False
        difference = problem.means(opened) - problem.means(closed)
        np.testing.assert_allclose(gradients[:, column], difference, atol=1e-12)


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


def test_many_masks_answer_as_they_do_alone(hard_problem):
    """A plan of several blocks gives the same responses and slopes as single masks."""
    problem = hard_problem(components=30, moderate=5, pairs=4, saturates=True, seed=2)
    masks = np.random.default_rng(1).random((1100, 30)) < 0.2
    plan = Plan(masks, np.arange(1100), np.arange(1100) % 7)
    together = problem.run(plan).responses
    sample = np.array([0, 511, 512, 1099])
    alone = [
        problem.run(Plan(masks[[row]], np.array([0]), np.array([row % 7]))).responses[0]
        for row in sample
    ]
    np.testing.assert_allclose(together[sample], alone, rtol=1e-12)
    slopes = problem.run(replace(plan, gradients=True)).slopes()
    np.testing.assert_allclose(slopes, problem.gradients(masks), rtol=1e-5)


def test_binary_rows_are_right_or_wrong_with_the_expected_chance(hard_problem):
    """Rows are 0 or 1 and average to the expected response; probabilities are not rounded."""
    problem = hard_problem(components=10, effect=0.4, binary=True, noise=0.0, seed=4)
    masks = np.zeros((2, 10), dtype=bool)
    masks[1, list(problem.planted[:2])] = True
    measured = problem.run(Plan.crossed(masks, np.arange(3000), response="accuracy"))
    assert set(measured.responses.tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(measured.mask_means(), problem.means(masks), atol=0.03)
    exact = problem.run(Plan.crossed(masks, np.arange(3), response="probability"))
    np.testing.assert_allclose(exact.mask_means(), problem.means(masks))
