"""Plans and measurements."""

import numpy as np
import pytest

from broca.measurement import Measurement, Plan


def test_crossed_plan_pairs_every_mask_with_every_item():
    """The rows of a crossed plan are ordered by mask, then by item."""
    plan = Plan.crossed(np.eye(2, 3, dtype=bool), np.array([4, 7]))
    np.testing.assert_array_equal(plan.mask_index, [0, 0, 1, 1])
    np.testing.assert_array_equal(plan.item_index, [4, 7, 4, 7])
    assert len(plan) == 4


def test_mask_means_average_over_the_rows_of_a_mask():
    """Without rows the mean is NaN; without gradients there are no slopes."""
    masks = np.zeros((3, 2), dtype=bool)
    plan = Plan(masks, np.array([0, 0, 2]), np.array([0, 1, 0]))
    means = Measurement(plan, np.array([1.0, 0.0, 0.25])).mask_means()
    np.testing.assert_allclose(means, [0.5, np.nan, 0.25])
    with pytest.raises(ValueError, match="no gradients"):
        Measurement(plan, np.ones(3)).slopes()


@pytest.mark.parametrize(
    ("masks", "mask_index", "item_index"),
    [
        (np.zeros((1, 2)), [0], [0]),
        (np.zeros(2, dtype=bool), [0], [0]),
        (np.zeros((1, 2), dtype=bool), [1], [0]),
        (np.zeros((1, 2), dtype=bool), [-1], [0]),
        (np.zeros((1, 2), dtype=bool), [0, 0], [0]),
    ],
    ids=["not boolean", "not a matrix", "mask out of range", "negative mask", "unequal lengths"],
)
def test_plan_refuses_what_does_not_fit(masks, mask_index, item_index):
    """Arrays that do not fit, and a scale of 1 (the intact model) or not finite, are refused."""
    for scale in (1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="other than 1"):
            Plan(np.eye(2, dtype=bool), np.array([0]), np.array([0]), scale=scale)
    with pytest.raises(ValueError, match="the response 'nope' is none of"):
        Plan.crossed(np.eye(2, dtype=bool), np.array([0]), response="nope")
    with pytest.raises(ValueError, match=r"mask"):
        Plan(masks, np.array(mask_index), np.array(item_index))
