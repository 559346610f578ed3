"""Backups are found by ablating them together with the leaders."""

import numpy as np
import pytest

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement
from broca.searches import Problem, make_search

ITEMS = np.arange(10)


def solve(score, *, k=5, **options):
    """Returns the ranking on a score of masks `(masks, 12)`, and the number of rows."""
    rows = 0

    def execute(plan):
        nonlocal rows
        rows += plan.cost
        return Measurement(plan, score(plan.masks)[plan.mask_index].astype(float))

    ranking = searches.run(
        make_search("co-ablation", Problem(12, ITEMS, k, None, 0), **options), execute
    )
    return ranking, rows


def backed_up(masks):
    """3 costs little unless its backup 8 is ablated; 8 alone costs nothing; 5 always costs 0.2."""
    return 1 - 0.1 * masks[:, 3] - 0.6 * (masks[:, 3] & masks[:, 8]) - 0.2 * masks[:, 5]


def test_a_backup_grows_and_is_selected():
    """Component 8 has no effect alone and an effect of 0.6 once the leaders are ablated."""
    ranking, rows = solve(backed_up)
    assert ranking.groups == {"leaders": (5, 3), "backups": (8,)}
    assert ranking.selected == (5, 3, 8)
    np.testing.assert_allclose(ranking.effects[[5, 3, 8, 0]], [-0.2, -0.1, -0.6, 0], atol=1e-12)
    assert rows == (1 + 12 + 1 + 10) * len(ITEMS)


def test_what_adds_up_has_no_backups():
    """Additive effects do not grow with the leaders ablated."""
    ranking, _ = solve(lambda masks: 1 - 0.2 * masks[:, 1] - 0.1 * masks[:, 2] - 0.1 * masks[:, 7])
    assert ranking.groups["backups"] == ()
    assert set(ranking.selected) == {1, 2, 7}


def test_leaders_that_leave_nothing_to_lose_are_followed_by_who_harms_alone():
    """Two of four components that each destroy the response lead, and all four are selected."""
    ranking, _ = solve(lambda masks: 1.0 - masks[:, [0, 4, 6, 9]].any(axis=1), k=4)
    assert set(ranking.selected) == {0, 4, 6, 9}
    assert ranking.effects[list(ranking.selected)] == pytest.approx(-1)


def test_more_leaders_than_places_are_refused():
    """The message names the option `leaders`."""
    with pytest.raises(BadInput, match=r"1 to k \(2\) leaders, not 3"):
        solve(backed_up, k=2, leaders=3)
