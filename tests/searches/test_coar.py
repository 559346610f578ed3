"""COAR regresses every item's responses on random ablations."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement
from broca.searches import Problem, make_search

COMPONENTS, ITEMS = 12, np.arange(3)


def measured(plan):
    """Item i needs component i, and all items need component 5."""
    rows = plan.masks[plan.mask_index]
    needed = rows[np.arange(len(rows)), plan.item_index]
    noise = np.random.default_rng(0).normal(0, 0.05, len(plan))
    return Measurement(plan, 1 - 0.5 * rows[:, 5] - 0.3 * needed + noise)


def test_effects_are_the_mean_of_the_items_regressions():
    """Effects equal the mean of scikit-learn's regressions of each item."""
    measurements = []

    def execute(plan):
        measurements.append(measured(plan))
        return measurements[-1]

    problem = Problem(COMPONENTS, ITEMS, 5, 600, 0)
    ranking = searches.run(make_search("coar", problem, share=0.2), execute)
    (measurement,) = measurements
    plan = measurement.plan
    rows = plan.masks[plan.mask_index]
    expected = np.mean(
        [
            LinearRegression()
            .fit(rows[plan.item_index == item], measurement.responses[plan.item_index == item])
            .coef_
            for item in ITEMS
        ],
        axis=0,
    )
    np.testing.assert_allclose(ranking.effects, expected, atol=1e-10)
    assert ranking.effects[5] == pytest.approx(-0.5, abs=0.05)
    assert ranking.selected[0] == 5


def test_every_item_has_the_intact_model_and_masks_of_its_own():
    """Each component is ablated on each item at least once."""
    plan = make_search("coar", Problem(COMPONENTS, ITEMS, 5, None, 0)).ask()
    table = plan.masks.reshape(3, 2 * COMPONENTS + 1, COMPONENTS)
    assert not table[:, 0].any()
    assert table.any(axis=1).all()
    assert (table[0] != table[1]).any()
    assert len(plan) == 3 * (2 * COMPONENTS + 1)


def test_share_out_of_range_is_refused():
    """The message names the option `share`."""
    with pytest.raises(BadInput, match="share of coar"):
        make_search("coar", Problem(COMPONENTS, ITEMS, 5, None, 0), share=1.0)
