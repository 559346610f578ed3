"""The arena asks and scores what `localize` would."""

import numpy as np
import pytest

import broca
from broca.errors import NothingToLocalize
from broca.studies.methods import Arena, CellKey, run_cell
from broca.tasks import TaskOptions


def key(arena, task, method, budget, seed):
    """A cell of the arena."""
    return CellKey(
        arena.model.fingerprint, task, arena.others(task), arena.items, arena.report_items,
        method, budget, seed, 5,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "budget", "rows"), [("focus", 300, 600), ("thompson", 400, 400)]
)
def test_a_cell_is_what_localize_finds(arena, reference, method, budget, rows):
    """Same heads, same drops, same rows; a budget is rows for each task that is measured."""
    cell = run_cell(arena, key(arena, "addition", method, budget, 3))
    result = broca.localize(
        reference,
        task="addition",
        others=["rhyming"],
        method=method,
        rows=rows,
        items=15,
        seed=3,
        verify=False,
        task_options=TaskOptions(limit=60),
    )
    assert not cell.refused
    assert cell.selected == result.selected
    assert cell.rows == result.cost.rows
    assert cell.drop == pytest.approx(result.verification.drop)
    assert cell.off_target == pytest.approx(result.verification.off_target_drop)
    assert cell.specific == pytest.approx(result.verification.specific_drop)


def test_tasks_of_the_same_capability_are_not_measured(arena):
    """Neither as others of the search nor in the off-target drop."""
    assert arena.others("addition") == ("rhyming",)
    assert arena.others("rhyming") == ("addition", "addition_words")
    problem, response = arena.problem("addition", method="focus", budget=400, seed=0, k=5)
    assert [one.name for one in problem.others] == ["rhyming"]
    assert (problem.rows, response) == (800, "probability")
    places = set(arena.places["addition_words"].tolist())
    for part in (problem.items, problem.confirm, *(o.items for o in problem.others)):
        assert not places & set(part.tolist())


def test_seeds_cut_other_items_and_the_parts_stay_apart(arena):
    """No item is both searched and reported on."""
    cuts = [arena.split("addition", seed) for seed in (0, 1)]
    assert cuts[0].locate != cuts[1].locate
    for cut in cuts:
        parts = [set(cut.locate), set(cut.confirm), set(cut.report)]
        assert sum(map(len, parts)) == len(set.union(*parts))
        assert set.union(*parts) <= set(arena.places["addition"].tolist())


def test_report_items_are_few_where_that_is_asked(arena, reference):
    """So many of the task, and about as many of the others together."""
    few = Arena.build(
        reference,
        tasks=["addition"],
        others=["rhyming", "capitals"],
        items=15,
        report_items=12,
        task_options=TaskOptions(limit=60),
    )
    reported = few._reported("addition", 0)
    assert {name: len(items) for name, items in reported.items()} == {
        "addition": 12,
        "rhyming": 6,
        "capitals": 6,
    }
    assert set(reported["addition"]) <= set(few.split("addition", 0).report)


def test_no_row_is_scored_twice(arena):
    """The same selection costs its rows once, the intact model never again."""
    executor = arena.executor("accuracy")
    arena.prove("addition", (3, 50), seed=0)
    before = executor.rows
    again = arena.prove("addition", (3, 50), seed=0)
    assert executor.rows == before
    assert again.specific_drop == pytest.approx(again.drop - again.off_target_drop)
    assert arena.prove("addition", (), seed=0).drop == 0


def test_a_task_that_the_model_cannot_do_is_refused_not_hidden(tiny):
    """A random model answers nothing right: the cell says so."""
    arena = Arena.build(
        tiny, tasks=["capitals"], others=[], items=10, task_options=TaskOptions(limit=40)
    )
    with pytest.raises(NothingToLocalize):
        arena.require_ability("capitals", 0)
    cell = run_cell(arena, key(arena, "capitals", "one-shot", None, 0))
    assert "nothing to localize" in cell.refused
    assert np.isclose(cell.specific, 0)
