"""Groups of rows that share a prefix."""

from __future__ import annotations

import numpy as np
import pytest

from broca.engine.prefixes import groups_that_fit, prefix_groups
from broca.engine.work import Decoding, Reading
from broca.tasks import Request

PREAMBLE = tuple(range(10, 60))


def test_groups_hold_every_row_once():
    """Every row is in one group or alone, and its prefix leaves at least one logit to compute."""
    rng = np.random.default_rng(0)
    work = []
    for number in range(60):
        tail = tuple(int(t) for t in rng.integers(0, 5, rng.integers(1, 6)))
        tokens = (*PREAMBLE[: int(rng.integers(0, 50))], *tail)
        if number % 2:
            work.append(Reading(int(rng.integers(3)), 0, tokens, [(number, (1,))]))
        else:
            request = Request("generate_until", tokens, max_new_tokens=4)
            work.append(Decoding(int(rng.integers(3)), 0, number, request))
    for kind in (Reading, Decoding):
        rows = [row for row in work if isinstance(row, kind)]
        for switch in ("auto", "on", "off"):
            groups, alone = prefix_groups(rows, switch)
            placed = [row for group in groups for row in group.members] + alone
            assert sorted(map(id, placed)) == sorted(map(id, rows))
            for group in groups:
                assert len({row.mask for row in group.members}) == 1
                for row in group.members:
                    assert row.tokens[: len(group.prefix)] == group.prefix
                    assert len(group.prefix) <= row.sharable


def read(tokens, *, mask=0, donor=0):
    """Returns a sequence whose last token predicts one more token."""
    return Reading(mask, donor, tokens, [(0, (1,))])


def test_the_grouping_that_saves_more_wins():
    """`auto` takes the larger saving: one preamble of all rows, or one context for each item."""
    preamble = [read((*range(40), n, n + 1)) for n in (50, 60, 70)]
    (group,), alone = prefix_groups(preamble, "auto")
    assert (group.prefix, group.saved, alone) == (tuple(range(40)), 80, [])
    items = [
        Reading(0, 0, (*range(first, first + 30), choice, 9), [(0, (choice, 9, 8))])
        for first in (0, 100)
        for choice in (5, 6, 7)
    ]
    groups, alone = prefix_groups(items, "auto")
    assert [len(group.prefix) for group in groups] == [29, 29]
    assert alone == []


@pytest.mark.parametrize(("saved", "groups"), [(8, 0), (9, 1)])
def test_auto_shares_what_saves_more_than_a_quarter(saved, groups):
    """`auto` shares a prefix that saves over a quarter of the tokens; `on` shares every prefix."""
    rows = [read((*range(saved), *range(base, base + 16 - saved))) for base in (100, 200)]
    assert len(prefix_groups(rows, "auto")[0]) == groups
    assert len(prefix_groups(rows, "on")[0]) == 1


def test_rows_of_other_masks_and_donors_share_nothing():
    """Rows under other masks or donors have other hidden states and share no prefix."""
    tokens = tuple(range(40))
    for other in (read(tokens, mask=1), read(tokens, donor=1)):
        groups, alone = prefix_groups([read(tokens), other], "on")
        assert (groups, len(alone)) == ([], 2)


def test_groups_that_fit_counts_members_and_is_at_least_one():
    """As many groups fit as their members fill the rows, and at least one."""
    groups, _ = prefix_groups(
        [read((*range(30), n), mask=mask) for mask in range(4) for n in (50, 60, 70)], "on"
    )
    assert [groups_that_fit(groups, rows) for rows in (1, 3, 5, 6, 11, 12, 99)] == [
        1, 1, 1, 2, 3, 4, 4,
    ]  # fmt: skip
