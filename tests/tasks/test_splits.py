"""Items are split into locate, confirm and report by seed and task."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broca.errors import BadInput
from broca.tasks import split_items
from broca.tasks.splits import SplitPart, split_parts


@given(st.integers(8, 2000), st.integers(1, 300), st.integers(0, 2**32))
def test_parts_are_disjoint_and_of_the_right_size(count, items, seed):
    """Parts share no item; locate and confirm have at most `items`, report at least half."""
    split = split_items("t", count, items=items, seed=seed)
    every = [*split.locate, *split.confirm, *split.report]
    assert len(set(every)) == len(every)
    assert set(every) <= set(range(count))
    assert 1 <= len(split.locate) <= items
    assert 1 <= len(split.confirm) <= items
    assert len(split.report) >= count // 2


def test_seed_and_task_decide_the_cut():
    """The same seed and task give the same split; another seed or task gives another."""
    first = split_items("t", 100, items=20, seed=0)
    assert first == split_items("t", 100, items=20, seed=0)
    assert first != split_items("t", 100, items=20, seed=1)
    assert first != split_items("u", 100, items=20, seed=0)


def test_more_items_never_move_the_report_items():
    """Report items do not depend on the number of items to search on."""
    small, large = (split_items("t", 400, items=n, seed=0) for n in (10, 100))
    assert small.report == large.report
    assert set(small.locate) <= set(large.locate)


def test_too_few_documents_are_refused():
    """A task with seven items is refused."""
    with pytest.raises(BadInput, match="task 't' has 7 items"):
        split_items("t", 7, items=10, seed=0)


def test_items_below_one_are_refused():
    """`items` below 1 is refused."""
    with pytest.raises(BadInput, match="`items` must be at least 1"):
        split_items("t", 70, items=0, seed=0)


@given(st.lists(st.integers(1, 60), min_size=2, max_size=8), st.integers(1, 40))
def test_groups_are_cut_task_by_task(counts, items):
    """Every task of a group reports at least half of its items, which `items` does not change."""
    parts, start = [], 0
    for number, count in enumerate([8, *counts]):
        parts.append(SplitPart(f"t{number}", range(start, start + count)))
        start += count
    split = split_parts("group", parts, items=items, seed=0)
    every = [*split.locate, *split.confirm, *split.report]
    assert len(set(every)) == len(every)
    assert len(split.locate) <= items
    for part in parts:
        assert len(set(part.scored) & set(split.report)) >= len(part.scored) / 2
    assert split_parts("group", parts, items=items + 5, seed=0).report == split.report


def test_items_of_another_split_are_for_the_search_alone():
    """Items of another split are halved to locate and confirm; all scored items are reported."""
    part = SplitPart("t", range(10), range(10, 50))
    split = split_parts("t", [part], items=15, seed=0)
    assert split.report == tuple(range(10))
    assert len(split.locate) == len(split.confirm) == 15
    assert set(split.locate) | set(split.confirm) <= set(range(10, 50))
    assert not set(split.locate) & set(split.confirm)


def test_one_located_document_is_too_few():
    """A single item to locate and confirm on is refused."""
    with pytest.raises(BadInput, match="1 items to locate and confirm on"):
        split_parts("t", [SplitPart("t", range(10), range(10, 11))], items=15, seed=0)
