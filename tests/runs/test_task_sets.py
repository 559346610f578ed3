"""The items of a run by part and task, and notes on tasks."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from broca.errors import BadInput
from broca.results.verification import Documents
from broca.runs import task_sets
from broca.tasks import Catalog, Split, TaskOptions

PARTS = {"report": ("sorting", "capitals"), "locate": ("capitals",)}


@pytest.fixture(scope="module")
def benchmarks(tiny):
    """Two tasks of 40 documents."""
    return task_sets.load_tasks(tiny, PARTS["report"], Catalog(), options=TaskOptions(limit=40))


def test_every_item_lies_where_its_place_says(benchmarks):
    """Items are in the bank part by part and task by task without gaps."""
    splits = {name: benchmark.split(items=5, seed=3) for name, benchmark in benchmarks.items()}
    bank, places = task_sets.lay_out(benchmarks, splits, PARTS)
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
    """A note has the task's name as given; a task without cut prompts has none."""
    uncut = SimpleNamespace(cut_items=0, items=range(9), notes=())
    cut = SimpleNamespace(cut_items=2, items=range(9), notes=("asked plainly",))
    tasks = task_sets.TaskSet("", (), (), {"sorting": uncut, "a tag": cut}, [], {})
    assert tasks.notes_of("sorting") == ()
    first, second = tasks.notes_of("a tag")
    assert first == "asked plainly"
    assert second.startswith("2 of 9 prompts of a tag were cut from the left")


def test_report_items_are_shared_out_evenly(benchmarks):
    """Each task has the same number of evenly spaced report items; other parts do not change."""
    complete, reduced = (
        task_sets.claim_tasks("sorting", benchmarks, items=5, seed=3, report_items=count)
        for count in (None, 7)
    )
    assert [len(places) for places in complete.places["report"].values()] == [20, 20]
    for name, places in reduced.places["report"].items():
        every = [complete.bank[place][1].number for place in complete.places["report"][name]]
        chosen = [reduced.bank[place][1].number for place in places]
        assert chosen == [every[round(place * 19 / 6)] for place in range(7)]
        for part in ("locate", "confirm"):
            numbers = [
                [tasks.bank[place][1].number for place in tasks.places[part][name]]
                for tasks in (complete, reduced)
            ]
            assert numbers[0] == numbers[1]


def test_fresh_items_ask_nothing_that_was_asked():
    """A question that stands in two documents is not fresh where a run used one of them."""
    split = Split((0,), (1,), tuple(range(2, 40)))
    twice = SimpleNamespace(
        name="t", items=range(40), split=lambda **_: split, asks=lambda item: item % 20,
        document_place=lambda item: ("t", "test", item),
    )  # fmt: skip
    seen = [Documents("t", "report", "t", "test", tuple(range(2, 8)))]
    fresh, _ = task_sets._fresh(twice, split, seen, required=True)
    assert sorted(fresh.report) == [1, *range(8, 20), 21, *range(28, 40)]


def test_documents_of_every_part_are_named(benchmarks):
    """The `doc_id`s of lm-eval identify the documents; whole tasks have every item once."""
    with pytest.raises(BadInput, match="also named in `same_skill`"):
        task_sets.claim_tasks("sorting", benchmarks, items=5, seed=3, same_skill=["sorting"])
    tasks = task_sets.claim_tasks("sorting", benchmarks, items=5, seed=3)
    named = {(documents.task, documents.part): documents for documents in tasks.documents}
    assert set(named) == {
        (task, part) for task in PARTS["report"] for part in ("report", "locate", "confirm")
    }
    for (task, part), documents in named.items():
        assert documents.member == task
        places = tasks.places[part][task]
        (prepared,) = benchmarks[task].harness_tasks
        data = prepared.dataset[documents.split]
        expected = [benchmarks[task].document(tasks.bank[place][1]) for place in places]
        assert [data[number] for number in documents.ids] == expected
    ids = [n for (task, _), cut in named.items() if task == "sorting" for n in cut.ids]
    assert len(ids) == len(set(ids))
    whole = task_sets.whole_tasks(benchmarks)
    for name, places in whole.places["report"].items():
        assert [whole.bank[place][1] for place in places] == list(benchmarks[name].items)


def test_tasks_near_chance_are_told(tiny):
    """Tasks at chance and near it are noted; others and the claimed task are not."""
    names = ("mc_biology", "mc_chemistry", "sorting")
    loaded = task_sets.load_tasks(tiny, names, Catalog(), options=TaskOptions(limit=40))
    tasks = task_sets.claim_tasks("sorting", loaded, items=5, seed=3)
    chance = loaded["mc_biology"].chance
    scores = {"mc_biology": chance, "mc_chemistry": 0.99, "sorting": 0.01}
    (note,) = task_sets.chance_notes(tasks, scores)
    assert note.startswith(f"the intact model scores {chance:.3f} on mc_biology (20 items), not ")
    large_tasks = replace(
        tasks, places={"report": dict.fromkeys(names, np.arange(1000) % len(tasks.bank))}
    )
    (note,) = task_sets.chance_notes(large_tasks, {**scores, "mc_biology": chance + 0.1})
    assert note.startswith(f"mc_biology scores {chance + 0.1:.3f} ")
    assert note.endswith("it can lose 10.0 points at most")


def test_auto_takes_a_stated_sample_of_a_large_folder(tmp_path, tiny):
    """A large folder is sampled in even steps and noted; a small one is used whole."""
    for number in range(20):
        (tmp_path / f"{number:02}.yaml").write_text(f"task: t{number:02}\ndataset_path: json\n")
    catalog = Catalog(tmp_path)
    sample = task_sets.other_tasks("t03", "auto", tiny, catalog)
    assert len(sample) == task_sets.MOST_OTHERS
    assert sample[:3] == ("t00", "t02", "t05")
    assert "t03" not in sample
    (note,) = task_sets.sampling_note("t03", "auto", sample, catalog)
    assert note.startswith("the other tasks are 8 of the 19 in the folder")
    assert all(name in note for name in sample)
    assert task_sets.sampling_note("t03", sample, sample, catalog) == ()
    for number in range(9, 20):
        (tmp_path / f"{number:02}.yaml").unlink()
    catalog = Catalog(tmp_path)
    all_names = task_sets.other_tasks("t03", "auto", tiny, catalog)
    assert len(all_names) == 8
    assert task_sets.sampling_note("t03", "auto", all_names, catalog) == ()
