"""Planted problems: what they answer can be computed by hand."""

from dataclasses import replace

import numpy as np
import pytest

from broca.plan import Plan
from broca.testing import planted_problem


def troubled(*, saturates):
    """Pairs that interact and a component with a backup."""
    problem = planted_problem(components=8, planted=3, noise=0.0, seed=1)
    backups = np.full(8, -1)
    backups[problem.planted[0]] = (problem.planted[0] + 1) % 8
    return replace(
        problem,
        pairs=np.array([problem.planted[:2], problem.planted[1:]]),
        pair_effects=np.array([-0.2, 0.1]),
        backups=backups,
        saturates=saturates,
    )


@pytest.mark.parametrize("saturates", [False, True])
@pytest.mark.parametrize("scale", [0.0, 0.3, 0.9])
def test_gradients_are_the_slopes_of_the_responses(saturates, scale):
    """Their sum over what a mask ablates is the slope in the scale of its gates."""
    problem = troubled(saturates=saturates)
    masks = np.random.default_rng(0).random((20, 8)) < 0.5
    slopes = (problem.gradients(masks, scale) * masks).sum(axis=1)
    step = 1e-6
    low, high = (problem.means(masks, at) for at in (scale - step, scale + step))
    np.testing.assert_allclose(slopes, (high - low) / (2 * step), atol=1e-7)


def test_a_gradient_of_an_open_gate_is_what_closing_it_costs():
    """What is lost is linear in each gate by itself: the slope is the whole difference."""
    problem = troubled(saturates=False)
    masks = np.random.default_rng(1).random((10, 8)) < 0.2
    gradients = problem.gradients(masks)
    for column in range(8):
        closed, opened = masks.copy(), masks.copy()
        closed[:, column], opened[:, column] = True, False
        difference = problem.means(opened) - problem.means(closed)
        np.testing.assert_allclose(gradients[:, column], difference, atol=1e-12)


def test_gradients_come_only_when_asked():
    """A row of each."""
    problem = planted_problem(components=8)
    plan = Plan.crossed(np.zeros((1, 8), dtype=bool), np.arange(2))
    assert problem.run(plan).gradients is None
    measured = problem.run(replace(plan, gradients=True)).slopes()
    np.testing.assert_allclose(measured, np.tile(-problem.effects, (2, 1)), rtol=1e-6)
