"""Methods by gradients of the gates, on smooth responses."""

import numpy as np
import pytest

from broca import searches
from broca.measurement import Measurement
from broca.searches import Problem, make_search

ITEMS = np.arange(10)


class Smooth:
    """A response that is a given function of the gates, with its gradient by central differences.

    Args:
        response: Maps gates `(components,)` to a number.
        components: The number of components.
    """

    def __init__(self, response, components):
        self.response, self.components, self.rows, self.plans = response, components, 0, []

    def run(self, plan):
        """Measures rows whose closed gates are at the plan's scale."""
        self.rows += plan.cost
        self.plans.append(plan)
        step = 1e-5 * np.eye(self.components)
        values, slopes = [], []
        for row in np.where(plan.masks, plan.scale or 0.0, 1.0):
            values.append(self.response(row))
            slopes.append(
                [(self.response(row + move) - self.response(row - move)) / 2e-5 for move in step]
            )
        slopes = np.array(slopes, dtype=np.float32)
        return Measurement(plan, np.array(values)[plan.mask_index], slopes[plan.mask_index])

    def solve(self, method, *, k=3, rows=None, **options):
        """Returns the ranking of a method."""
        problem = Problem(self.components, ITEMS, k, rows, 0, differentiable=True)
        return searches.run(make_search(method, problem, **options), self.run)


def curved(gates):
    """A response that is not linear in its gates."""
    return np.tanh(2 * gates[0]) * (0.5 + gates[1] ** 2) + gates[2] * gates[0]


def test_effects_are_minus_the_slopes():
    """Effects are exact for a linear response and the tangent for another."""
    smooth = Smooth(lambda gates: 2 * gates[0] + gates[1] ** 3 - gates[2], 4)
    ranking = smooth.solve("gradient")
    np.testing.assert_allclose(ranking.effects, [-2, -3, 1, 0], atol=1e-3)
    assert ranking.selected == (1, 0)
    assert smooth.rows == 3 * len(ITEMS)


def test_gradient_misses_redundant_components():
    """A saturated response has no slope at the intact model, but it has one in masked rows."""

    def either(gates):
        return min(1.0, gates[0] + gates[1])

    assert Smooth(either, 6).solve("gradient").selected == ()
    selected = Smooth(either, 6).solve("gradient-masked", rows=3000, low=0.1, high=0.3).selected
    assert set(selected) == {0, 1}


def test_every_row_has_a_mask_of_its_own_within_the_shares():
    """Masks ablate 5 to 15 % of 100 components, and items are used equally often."""
    smooth = Smooth(lambda gates: gates[0], 100)
    assert smooth.solve("gradient-masked").selected == (0,)
    (plan,) = smooth.plans
    assert len(plan) == len(plan.masks) == 4 * len(ITEMS)
    sizes = plan.masks.sum(axis=1)
    assert 5 <= sizes.min() < sizes.max() <= 15
    np.testing.assert_array_equal(np.bincount(plan.item_index), np.full(len(ITEMS), 4))
    smooth.solve("gradient-masked", rows=200)  # more rows than items
    assert smooth.plans[-1].cost == 198


def test_effects_average_the_slopes_of_the_rows():
    """The effect of a factor is minus the share of rows in which the other factor is intact."""
    smooth = Smooth(lambda gates: gates[0] * gates[1], 10)
    ranking = smooth.solve("gradient-masked", low=0.3, high=0.3)
    off = smooth.plans[0].masks.mean(axis=0)
    np.testing.assert_allclose(ranking.effects[:2], [off[1] - 1, off[0] - 1], atol=1e-3)


def test_integrated_effects_add_up_to_what_all_components_carry():
    """The error of their sum falls quadratically with the steps, as that of the midpoint rule."""
    expected = curved(np.zeros(5)) - curved(np.ones(5))
    errors = [
        abs(Smooth(curved, 5).solve("gradient-integrated", steps=steps).effects.sum() - expected)
        for steps in (2, 4, 8, 64)
    ]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert errors[-1] < 2e-3


def mixed(gates):
    """Components 2 and 5 are needed, 7 interferes, and all others have no effect."""
    return gates[2] + 0.6 * gates[5] - 0.5 * gates[7]


def test_learned_gates_tell_needed_harmful_and_irrelevant_apart():
    """Effects have the size of the slopes, and those of irrelevant components are nearly zero."""
    ranking = Smooth(mixed, 10).solve("learned-gates")
    assert ranking.groups == {"facilitating": (2, 5), "interfering": (7,)}
    assert ranking.selected == (2, 5)
    assert ranking.effects[[2, 5, 7]] == pytest.approx([-1, -0.6, 0.5], rel=0.05)
    assert abs(ranking.effects[[0, 1, 3, 4, 6, 8, 9]]).max() < 1e-3
    product = Smooth(lambda gates: gates[1] * gates[3], 8)  # no slope without one of them
    assert set(product.solve("learned-gates").selected) == {1, 3}


@pytest.mark.parametrize("rows", [51, 60, 300, 999])
def test_a_budget_shortens_the_training(rows):
    """The budget is kept, and most of it is used."""
    smooth = Smooth(mixed, 10)
    smooth.solve("learned-gates", rows=rows)
    assert 0.6 * rows < smooth.rows <= rows
