"""Where the items of a run lie, and what is said of those that did not fit."""

from types import SimpleNamespace

import pytest

from broca.runs.task_sets import TaskSet, lay_out, load_tasks
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


def test_cut_prompts_are_told():
    """By the name that was asked for; nothing is said where all fit."""
    whole = SimpleNamespace(cut_items=0, items=range(9), notes=())
    cut = SimpleNamespace(cut_items=2, items=range(9), notes=("asked plainly",))
    tasks = TaskSet("", (), (), {"sorting": whole, "a tag": cut}, [], {})
    assert tasks.notes_of("sorting") == ()
    first, second = tasks.notes_of("a tag")
    assert first == "asked plainly"
    assert second.startswith("2 of 9 prompts of a tag were cut from the left")
