"""Items are split into locate, confirm and report by seed and task."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broca.errors import BadInput
from broca.tasks.items import SplitPart, split_parts


def split_items(task, count, *, items, seed):
    """Splits the items of a single task."""
    return split_parts(task, [SplitPart(task, list(range(count)), [])], items=items, seed=seed)


@given(st.lists(st.integers(8, 400), min_size=1, max_size=8), st.integers(1, 40), st.integers(0))
def test_parts_are_disjoint_and_of_the_right_size(counts, items, seed):
    """Every task reports at least half of its items, and more search items never move these."""
    parts, start = [], 0
    for number, count in enumerate(counts):
        parts.append(SplitPart(f"t{number}", list(range(start, start + count)), []))
        start += count
    split = split_parts("group", parts, items=items, seed=seed)
    every = [*split.locate, *split.confirm, *split.report]
    assert len(set(every)) == len(every)
    assert set(every) <= set(range(start))
    assert 1 <= len(split.locate) <= items
    assert 1 <= len(split.confirm) <= items
    for part in parts:
        assert len(set(part.scored) & set(split.report)) >= len(part.scored) / 2
    more = split_parts("group", parts, items=items + 5, seed=seed)
    assert more.report == split.report
    assert set(split.locate) <= set(more.locate)


def test_what_one_task_reports_no_other_task_is_searched_on():
    """Of two tasks that ask the same, the search has no question that either of them reports."""
    parts = [SplitPart("t", list(range(40)), []), SplitPart("u", list(range(40, 80)), [])]
    asks = [str(position % 40) for position in range(80)]
    split = split_parts("group", parts, items=99, seed=0, asks=asks)
    asked, confirmed, reported = ({asks[at] for at in part} for part in vars(split).values())
    assert asked
    assert confirmed
    assert not (asked | confirmed) & reported
    few = split_parts("group", parts, items=6, seed=1)
    assert {position < 40 for position in few.locate} == {True, False}, "both tasks are searched"


def test_seed_and_task_decide_the_cut():
    """The same seed and task give the same split; another seed or task gives another.

    A file of examples in another folder is the same task.
    """
    first = split_items("t", 100, items=20, seed=0)
    assert first == split_items("t", 100, items=20, seed=0)
    assert first != split_items("t", 100, items=20, seed=1)
    assert first != split_items("u", 100, items=20, seed=0)
    assert first == split_items("/data/t", 100, items=20, seed=0)


def test_too_few_items_are_refused():
    """A task with seven items, one located item and no items to search on are refused."""
    with pytest.raises(BadInput, match="task 't' has 7 items"):
        split_items("t", 7, items=10, seed=0)
    with pytest.raises(BadInput, match="`items` must be at least 1"):
        split_items("t", 70, items=0, seed=0)
    with pytest.raises(BadInput, match="1 items to locate and confirm on"):
        split_parts("t", [SplitPart("t", list(range(10)), [10])], items=15, seed=0)
