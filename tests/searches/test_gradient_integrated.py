"""The gradient integrated along a path of all gates."""

import numpy as np
import pytest
from searches.test_gradient import ITEMS, Smooth

from broca.errors import BadInput


def curved(gates):
    """A response that is not linear in its gates."""
    return np.tanh(2 * gates[0]) * (0.5 + gates[1] ** 2) + gates[2] * gates[0]


def test_effects_add_up_to_what_all_components_carry():
    """The sum of effects is the response with all gates closed minus that with all gates open."""
    ranking = Smooth(curved, 5).solve("gradient-integrated", steps=64)
    expected = curved(np.zeros(5)) - curved(np.ones(5))
    assert ranking.effects.sum() == pytest.approx(expected, abs=2e-3)


def test_error_falls_with_the_square_of_the_steps():
    """The error falls quadratically, as that of the midpoint rule."""
    expected = curved(np.zeros(5)) - curved(np.ones(5))
    errors = [
        abs(Smooth(curved, 5).solve("gradient-integrated", steps=steps).effects.sum() - expected)
        for steps in (2, 4, 8)
    ]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_gates_close_together_in_equal_steps():
    """Each plan closes all gates to one scale, and the scales are midpoints of equal steps."""
    smooth = Smooth(curved, 5)
    smooth.solve("gradient-integrated", steps=4)
    assert [plan.scale for plan in smooth.plans] == [0.875, 0.625, 0.375, 0.125]
    assert all(plan.masks.all() for plan in smooth.plans)
    assert smooth.rows == 3 * 4 * len(ITEMS)


def test_no_step_is_refused():
    """The message names the required number of steps."""
    with pytest.raises(BadInput, match="1 step or more"):
        Smooth(curved, 5).solve("gradient-integrated", steps=0)
