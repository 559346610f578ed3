"""Runs are listed, and their rows are read as matrices, as a table, and once more."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from journals import CONDITION, NAMES, filled, observed

from broca.errors import BadInput, NotInJournal
from broca.measurement import Plan
from broca.store import Journal, Replay, export_rows, find_run, read_run, read_runs

DRAWN = np.random.default_rng(0).random((12, 9)) < 0.5
"""The masks that `filled` writes."""


@pytest.fixture
def journal():
    """An empty journal in memory."""
    with Journal() as journal:
        yield journal


def test_runs_are_listed_with_what_they_cost(journal):
    """Runs are listed oldest first, with rows, tokens, numbers of columns and items."""
    run, _, keys, *_ = filled(journal)
    observed(journal, run)
    items = keys & 0xFFFFFFFF
    two = {"components": 1, "items": items[:2], "process": "process 2"}
    later = journal.begin_run(b"later", settings={"k": 3}, **two)
    journal.finish_run(later)
    journal.note_search(later, {"method": "greedy"})
    first, second = read_runs(journal)
    assert (first.id, first.digest, first.rows, first.tokens) == (run, b"run".hex(), 12, 5 + 7)
    assert (first.components, first.process, first.finished) == (9, "process 1", None)
    assert journal.bank(run) == items.tolist()
    assert (second.settings, second.search) == ({"k": 3}, {"method": "greedy"})
    assert (second.rows, second.tokens, second.items) == (0, 0, 2)
    assert second.finished is not None
    assert find_run(journal) == second
    assert find_run(journal, b"run".hex()) == first
    with pytest.raises(BadInput, match="holds no such run"):
        find_run(journal, "00")


@pytest.mark.parametrize("gradients", [False, True])
def test_rows_come_back_as_matrices(journal, gradients):
    """Every row is read once, under the mask and item that it was written with."""
    run, condition, keys, responses, slopes = filled(journal, gradients=gradients)
    order = np.array([3, 0, 11])
    other = journal.condition(replace(CONDITION, response="accuracy"))
    with pytest.raises(NotInJournal, match="holds no rows of the search of run 1"):
        read_run(journal, run)
    for plan_keys, under in ((keys[order[:2]], condition), (keys[order], condition), (keys, other)):
        journal.add_plan(run, role="search", condition=under, keys=plan_keys)
    journal.add_plan(run, role="search", condition=condition, keys=keys[:1] + 2**40)
    rows = read_run(journal, run)
    assert rows.components == NAMES
    assert rows.condition == replace(CONDITION, gradients=gradients)
    np.testing.assert_array_equal(rows.masks, DRAWN[order])
    assert [rows.records[item].number for item in rows.items.tolist()] == order.tolist()
    np.testing.assert_array_equal(rows.responses, responses[order])
    if gradients:
        np.testing.assert_array_equal(rows.gradients, slopes[order])
    else:
        assert rows.gradients is None


def plan(first, last, moved=0):
    """Returns a plan of one row for each mask, on the item at the same position."""
    rows = np.arange(first, last)
    return Plan(DRAWN[first:last], rows - first, rows + moved)


def test_plans_are_answered_one_after_the_other(journal):
    """Plans get the recorded responses in order; other plans and lost rows are refused."""
    run, condition, keys, responses, _ = filled(journal)
    for rows in (slice(0, 8), slice(8, 12)):
        journal.add_plan(run, role="search", condition=condition, keys=keys[rows])
    replay = Replay(journal, 1)
    np.testing.assert_array_equal(replay.run(plan(0, 8)).responses, responses[:8])
    np.testing.assert_array_equal(replay.run(plan(8, 12)).responses, responses[8:])
    with pytest.raises(NotInJournal, match="ended after 2 plans"):
        replay.run(plan(8, 12))
    with pytest.raises(NotInJournal, match="plan 0 asked for other masks"):
        Replay(journal, 1).run(plan(8, 12))
    with pytest.raises(NotInJournal, match="ended after 0 plans"):
        Replay(journal, 1, role="scores").run(plan(0, 8))
    unmeasured = journal.condition(replace(CONDITION, response="accuracy"))
    ((keys,),) = journal.query("SELECT keys FROM plans LIMIT 1")
    journal.add_plan(1, role="other", condition=unmeasured, keys=np.frombuffer(keys, "<i8"))
    with pytest.raises(NotInJournal, match="8 of 8 rows were not measured"):
        Replay(journal, 1, role="other").run(plan(0, 8))
    moved = Replay(journal, 1)  # a bank may be numbered otherwise, but the same in all plans
    np.testing.assert_array_equal(moved.run(plan(0, 8, moved=50)).responses, responses[:8])
    with pytest.raises(NotInJournal, match="plan 1 asked for other items"):
        moved.run(replace(plan(8, 12), item_index=np.array([50, 61, 62, 63])))


def test_every_row_is_in_the_table(journal, tmp_path):
    """Each row has its condition, item, response and output, and the names of what was ablated."""
    *_, responses, _ = filled(journal)
    filled(journal, seed=1, gradients=True)
    file = tmp_path / "rows.csv"
    assert export_rows(journal, file) == 24
    table = pd.read_csv(
        file, keep_default_na=False, float_precision="round_trip", dtype={"item_digest": str}
    )[:12]
    np.testing.assert_array_equal(table["value"], responses)
    assert table["ablated"].tolist() == ["+".join(np.array(NAMES)[mask]) for mask in DRAWN]
    assert table["item"].tolist() == list(range(12))
    assert table["item_digest"][3] == b"0 3".hex()
    assert table["output"].tolist() == ['["x"]', *[""] * 11]
    assert {*table["weights"]} == {CONDITION.weights}
    assert {*table["response"]} == {CONDITION.response}
    with pytest.raises(BadInput, match="choose another place"):
        export_rows(journal, tmp_path / "nowhere" / "rows.csv")
    with Journal() as empty:
        assert export_rows(empty, tmp_path / "empty.csv") == 0
