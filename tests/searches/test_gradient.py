"""The gradient method at the intact model."""

import numpy as np
import pytest

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement
from broca.searches import METHODS, Problem, make_search

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
        gates = np.where(plan.masks, plan.scale or 0.0, 1.0)
        values, slopes = [], []
        for row in gates:
            values.append(self.response(row))
            step = 1e-5 * np.eye(self.components)
            slopes.append(
                [(self.response(row + move) - self.response(row - move)) / 2e-5 for move in step]
            )
        return Measurement(
            plan,
            np.array(values)[plan.mask_index],
            np.array(slopes, dtype=np.float32)[plan.mask_index] if plan.gradients else None,
        )

    def solve(self, method, *, k=3, rows=None, seed=0, **options):
        """Returns the ranking of a method."""
        problem = Problem(self.components, ITEMS, k, rows, seed, differentiable=True)
        return searches.run(make_search(method, problem, **options), self.run)


@pytest.mark.parametrize("method", [m.name for m in METHODS.values() if m.needs_gradients])
def test_response_without_gradient_is_refused(method):
    """The message names the responses that have gradients."""
    with pytest.raises(BadInput, match="`response` to probability or margin"):
        make_search(method, Problem(4, ITEMS, 1, None, 0))


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
