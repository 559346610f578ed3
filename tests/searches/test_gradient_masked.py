"""The mean gradient under random masks."""

import numpy as np
import pytest
from searches.test_gradient import ITEMS, Smooth

from broca.errors import BadInput


def test_every_row_has_a_mask_of_its_own_within_the_shares():
    """Masks ablate 5 to 15 % of 100 components, and items are used equally often."""
    smooth = Smooth(lambda gates: gates[0], 100)
    ranking = smooth.solve("gradient-masked")
    (plan,) = smooth.plans
    assert len(plan) == len(plan.masks) == 4 * len(ITEMS)
    sizes = plan.masks.sum(axis=1)
    assert 5 <= sizes.min() < sizes.max() <= 15
    np.testing.assert_array_equal(np.bincount(plan.item_index), np.full(len(ITEMS), 4))
    assert ranking.selected == (0,)


def test_effects_average_the_slopes_of_the_rows():
    """The effect of a factor is minus the share of rows in which the other factor is intact."""
    smooth = Smooth(lambda gates: gates[0] * gates[1], 10)
    ranking = smooth.solve("gradient-masked", low=0.3, high=0.3)
    off = smooth.plans[0].masks.mean(axis=0)
    np.testing.assert_allclose(ranking.effects[:2], [off[1] - 1, off[0] - 1], atol=1e-3)


def test_the_budget_is_used():
    """A budget with more rows than items uses items repeatedly."""
    smooth = Smooth(lambda gates: gates[0], 8)
    smooth.solve("gradient-masked", rows=200)
    assert smooth.rows == 198


def test_bad_shares_are_refused():
    """The message has the required order of `low` and `high`."""
    with pytest.raises(BadInput, match="low <= high"):
        Smooth(lambda gates: gates[0], 8).solve("gradient-masked", low=0.5, high=0.2)
