"""Backups show once the leaders are gone."""

import numpy as np
import pytest

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement
from broca.searches import Problem, make_search

ITEMS = np.arange(10)


def solve(score, *, k=5, **options):
    """The ranking on a score of masks `(masks, 12)`, and the rows it took."""
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
    """3 costs little while 8 stands in for it; 8 alone costs nothing; 5 costs 0.2 in any case."""
    return 1 - 0.1 * masks[:, 3] - 0.6 * (masks[:, 3] & masks[:, 8]) - 0.2 * masks[:, 5]


def test_a_backup_grows_and_is_selected():
    """8 is invisible alone, and worth 0.6 once the leaders are gone."""
    ranking, rows = solve(backed_up)
    assert ranking.groups == {"leaders": (5, 3), "backups": (8,)}
    assert ranking.selected == (5, 3, 8)
    np.testing.assert_allclose(ranking.effects[[5, 3, 8, 0]], [-0.2, -0.1, -0.6, 0], atol=1e-12)
    assert rows == (1 + 12 + 1 + 10) * len(ITEMS)


def test_what_adds_up_has_no_backups():
    """Effects that add do not grow."""
    ranking, _ = solve(lambda masks: 1 - 0.2 * masks[:, 1] - 0.1 * masks[:, 2] - 0.1 * masks[:, 7])
    assert ranking.groups["backups"] == ()
    assert set(ranking.selected) == {1, 2, 7}


def test_leaders_that_leave_nothing_to_lose_are_followed_by_who_harms_alone():
    """Of four that each destroy all, two lead, and the others are not forgotten."""
    ranking, _ = solve(lambda masks: 1.0 - masks[:, [0, 4, 6, 9]].any(axis=1), k=4)
    assert set(ranking.selected) == {0, 4, 6, 9}
    assert ranking.effects[list(ranking.selected)] == pytest.approx(-1)


def test_more_leaders_than_places_are_refused():
    """By name."""
    with pytest.raises(BadInput, match=r"1 to k \(2\) leaders, not 3"):
        solve(backed_up, k=2, leaders=3)
