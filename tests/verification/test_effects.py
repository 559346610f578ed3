"""Interactions between pairs."""

import numpy as np
import pytest

from broca.errors import BadInput
from broca.measurement import Measurement
from broca.verification.effects import pairwise, require_count

NAMES = ("L0H0", "L0H1", "L0H2", "L0H3")
ITEMS = np.arange(5, 45)


def execute(plan):
    """Returns responses in which 1 and 3 stand in for each other and 0 and 3 overlap."""
    masks = plan.masks[plan.mask_index]
    score = 1 - 0.2 * masks[:, 0] - 0.1 * masks[:, 1] - 0.3 * masks[:, 3]
    score -= 0.4 * (masks[:, 1] & masks[:, 3])
    score += 0.1 * (masks[:, 0] & masks[:, 3])
    noise = np.random.default_rng(0).normal(0, 0.05, len(plan))
    return Measurement(plan, score + noise)


def test_interaction_is_what_pairs_lose_beyond_the_sum():
    """Planted interactions come first and lie within their intervals."""
    pairs = pairwise(NAMES, (3, 0, 1), ITEMS, execute)
    assert [{pair.first, pair.second} for pair in pairs] == [
        {"L0H3", "L0H1"},
        {"L0H3", "L0H0"},
        {"L0H0", "L0H1"},
    ]
    for pair, true in zip(pairs, (-0.4, 0.1, 0.0), strict=True):
        assert pair.ci[0] < true < pair.ci[1]
        assert pair.interaction == pytest.approx(
            pair.joint_effect - pair.first_effect - pair.second_effect
        )
    assert pairs[0].ci[1] < 0 < pairs[1].ci[0]
    assert pairwise(NAMES, (), ITEMS, lambda plan: pytest.fail("measured")) == ()


def test_intervals_hold_in_nine_of_ten_draws():
    """In 400 draws without an interaction, 86 to 97 % of the intervals contain 0."""
    rng = np.random.default_rng(1)
    held = []
    for _ in range(400):

        def chances(plan):
            alone = 1 - 0.2 * plan.masks[plan.mask_index].sum(axis=1)
            return Measurement(plan, (rng.random(len(plan)) < alone).astype(float))

        (pair,) = pairwise(NAMES, (0, 1), ITEMS, chances)
        held.append(pair.ci[0] <= 0 <= pair.ci[1])
    assert 0.86 <= np.mean(held) <= 0.97


def test_equal_answers_leave_some_doubt():
    """Forty equal items leave an interval around 0; a constant response has the interval (0, 0)."""

    def measured(score):
        def execute(plan):
            return Measurement(plan, score(plan.masks)[plan.mask_index].astype(float))

        (pair,) = pairwise(NAMES, (1, 2), ITEMS, execute)
        return pair

    lost = measured(lambda masks: 1 - masks[:, 1])
    assert lost.interaction == 0
    assert lost.ci[0] < 0 < lost.ci[1]
    assert measured(lambda masks: np.ones(len(masks))).ci == (0.0, 0.0)


@pytest.mark.parametrize("count", [-1, 1, 5, 21])
def test_numbers_without_pairs_are_refused(count):
    """Numbers other than 0 and 2 to the maximum are refused; the message states the range."""
    with pytest.raises(BadInput, match="2 to 4"):
        require_count(count, 4)
    require_count(0, 4)
    require_count(4, 4)
