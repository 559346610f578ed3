"""Methods by gradients of the gates, on smooth responses."""

import numpy as np
import pytest
from task_problems import rows_of, searched

from broca.measurement import Measurement
from broca.searches import Problem

ITEMS = np.arange(10)


def solve(method, response, components, *, k=3, rows=None, scale=0.0, **options):
    """Returns the ranking of a method and its plans on a response with its central differences.

    Args:
        method: Name of the method.
        response: Maps gates `(components,)` to a number.
        components: The number of components.
        k: Maximum number of components to select.
        rows: Maximum number of rows.
        scale: Gate of an ablated component.
        options: Options of the method.
    """

    def execute(plan):
        step = 1e-5 * np.eye(components)
        gates = np.where(plan.masks, scale if plan.scale is None else plan.scale, 1.0)
        slopes = [
            [(response(row + move) - response(row - move)) / 2e-5 for move in step] for row in gates
        ]
        values = np.array([response(row) for row in gates])
        slopes = np.array(slopes, dtype=np.float32)
        return Measurement(plan, values[plan.mask_index], slopes[plan.mask_index])

    problem = Problem(components, ITEMS, k, rows, 0, differentiable=True, scale=scale)
    return searched(method, execute, problem, **options)


def curved(gates):
    """A response that is not linear in its gates."""
    return np.tanh(2 * gates[0]) * (0.5 + gates[1] ** 2) + gates[2] * gates[0]


@pytest.mark.parametrize(("scale", "selected"), [(0.0, (1, 0)), (0.5, (1, 0)), (2.0, (2,))])
def test_effects_are_minus_the_slopes(scale, selected):
    """Effects are exact for a linear response and the tangent for another, at every scale."""
    ranking, plans = solve("gradient", lambda g: 2 * g[0] + g[1] ** 3 - g[2], 4, scale=scale)
    np.testing.assert_allclose(ranking.effects, (1 - scale) * np.array([-2, -3, 1, 0]), atol=1e-3)
    assert ranking.selected == selected
    assert rows_of(plans) == 3 * len(ITEMS)


def test_gradient_misses_redundant_components():
    """A saturated response has no slope at the intact model, but it has one in masked rows."""

    def either(gates):
        return min(1.0, gates[0] + gates[1])

    assert solve("gradient", either, 6)[0].selected == ()
    ranking, _ = solve("gradient-masked", either, 6, rows=3000, low=0.1, high=0.3)
    assert set(ranking.selected) == {0, 1}


def test_every_row_has_a_mask_of_its_own_within_the_shares():
    """Masks ablate 5 to 15 % of 100 components, and items are used equally often."""
    ranking, (plan,) = solve("gradient-masked", lambda gates: -gates[0], 100, scale=2.0)
    assert ranking.selected == (0,)
    assert len(plan) == len(plan.masks) == 4 * len(ITEMS)
    sizes = plan.masks.sum(axis=1)
    assert 5 <= sizes.min() < sizes.max() <= 15
    np.testing.assert_array_equal(np.bincount(plan.item_index), np.full(len(ITEMS), 4))
    low, high = ranking.intervals[0]
    again = solve("gradient-masked", lambda gates: gates[0], 100, rows=1200)[0].intervals[0]
    assert again == pytest.approx((low, high))  # rows of the same items add no evidence
    _, plans = solve("gradient-masked", lambda gates: gates[0], 100, rows=200)
    assert rows_of(plans) == 198  # more rows than items


@pytest.mark.parametrize("scale", [0.0, -0.5])
def test_integrated_effects_add_up_to_what_all_components_carry(scale):
    """The error of their sum falls quadratically with the steps, as that of the midpoint rule."""
    expected = curved(np.full(5, scale)) - curved(np.ones(5))
    found = [
        solve("gradient-integrated", curved, 5, steps=steps, scale=scale)[0]
        for steps in (2, 4, 8, 64)
    ]
    errors = [abs(ranking.effects.sum() - expected) for ranking in found]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert errors[-1] < 2e-3


def mixed(gates):
    """Components 2 and 5 are needed, 7 interferes, and all others have no effect."""
    return gates[2] + 0.6 * gates[5] - 0.5 * gates[7]


def test_learned_gates_tell_needed_harmful_and_irrelevant_apart():
    """Effects have the size of the slopes, and those of irrelevant components are nearly zero."""
    ranking, _ = solve("learned-gates", mixed, 10)
    assert ranking.groups == {"facilitating": (2, 5), "interfering": (7,)}
    assert ranking.selected == (2, 5)
    assert ranking.effects[[2, 5, 7]] == pytest.approx([-1, -0.6, 0.5], rel=0.05)
    assert abs(ranking.effects[[0, 1, 3, 4, 6, 8, 9]]).max() < 1e-3
    product, _ = solve("learned-gates", lambda gates: gates[1] * gates[3], 8)
    assert set(product.selected) == {1, 3}  # neither has a slope without the other
