"""Every member of every set is found on a trained model with planted backups."""

from statistics import mean

import pytest


@pytest.mark.long
@pytest.mark.parametrize("k", [2, 5])
def test_all_members_of_all_sets_are_found(script, k):
    """The mean recall over both tasks and two seeds is at least 0.9, and takers-over are right."""
    lines = list(script("backups").searched(range(2), rows=3000, k=k, alternatives=2))
    assert len(lines) == 4
    assert mean(line["recall"] for line in lines) >= 0.9
    assert mean(line["backups_precision"] for line in lines) >= 0.9
