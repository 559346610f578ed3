"""Where the items of a run lie, and what is said of those that did not fit."""

from types import SimpleNamespace

import pytest

from broca.runs.task_sets import cut_note, lay_out, load_tasks, put
from broca.tasks import Catalog, TaskOptions

PARTS = {"report": ("sorting", "capitals"), "locate": ("capitals",)}


@pytest.fixture(scope="module")
def benchmarks(tiny):
    """Two tasks of 40 documents."""
    return load_tasks(tiny, PARTS["report"], Catalog(), options=TaskOptions(limit=40))


def test_every_item_lies_where_its_place_says(benchmarks):
    """Part by part, task by task, without gaps."""
    splits = {name: one.split(items=5, seed=3) for name, one in benchmarks.items()}
    bank, places = lay_out(benchmarks, splits, PARTS)
    start = 0
    for part, names in PARTS.items():
        assert tuple(places[part]) == names
        for name in names:
            numbers = getattr(splits[name], part)
            assert places[part][name].tolist() == list(range(start, start + len(numbers)))
            start += len(numbers)
            for position, number in zip(places[part][name], numbers, strict=True):
                assert bank[position] == (benchmarks[name], benchmarks[name].items[number])
    assert start == len(bank)


def test_items_are_put_at_the_end(benchmarks):
    """Their positions go on where the bank ended."""
    bank = []
    one = benchmarks["sorting"]
    assert put(bank, one, (4, 2)).tolist() == [0, 1]
    assert put(bank, one, (7,)).tolist() == [2]
    assert [item for _, item in bank] == [one.items[number] for number in (4, 2, 7)]


def test_cut_prompts_are_told():
    """By the name that was asked for; nothing is said where all fit."""
    whole = SimpleNamespace(cut_items=0, items=range(9))
    assert cut_note("sorting", whole) == ()
    (note,) = cut_note("a tag", SimpleNamespace(cut_items=2, items=range(9)))
    assert note.startswith("2 of 9 prompts of a tag were cut from the left")
