"""Items are cut once, by seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broca.errors import BadInput
from broca.tasks import split_items


@given(st.integers(8, 2000), st.integers(1, 300), st.integers(0, 2**32))
def test_parts_are_disjoint_and_of_the_right_size(count, items, seed):
    """No item is in two parts; locate and confirm hold at most `items`, report half."""
    split = split_items("t", count, items=items, seed=seed)
    every = [*split.locate, *split.confirm, *split.report]
    assert len(set(every)) == len(every)
    assert set(every) <= set(range(count))
    assert 1 <= len(split.locate) <= items
    assert 1 <= len(split.confirm) <= items
    assert len(split.report) >= count // 2


def test_seed_and_task_decide_the_cut():
    """The same seed cuts alike; another seed or task cuts otherwise."""
    first = split_items("t", 100, items=20, seed=0)
    assert first == split_items("t", 100, items=20, seed=0)
    assert first != split_items("t", 100, items=20, seed=1)
    assert first != split_items("u", 100, items=20, seed=0)


def test_more_items_never_move_the_report_items():
    """What is shown does not depend on how many items the search used."""
    few, many = (split_items("t", 400, items=n, seed=0) for n in (10, 100))
    assert few.report == many.report
    assert set(few.locate) <= set(many.locate)


def test_too_few_documents_are_refused():
    """Seven items cannot be cut in three."""
    with pytest.raises(BadInput, match="task 't' has 7 items"):
        split_items("t", 7, items=10, seed=0)


def test_items_below_one_are_refused():
    """The option is named."""
    with pytest.raises(BadInput, match="--items must be at least 1"):
        split_items("t", 70, items=0, seed=0)
