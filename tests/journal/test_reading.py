"""Runs are listed and their rows are read as matrices equal to what was written."""

import numpy as np
import pytest
from journals import CONDITION, NAMES, filled, observed

from broca.errors import BadInput, JournalDamaged, NotInJournal
from broca.journal import Condition, Journal, read_run, read_runs
from broca.journal.reading import find_run


@pytest.fixture
def journal():
    """An empty journal in memory."""
    with Journal.in_memory() as journal:
        yield journal


def note_plan(journal, written, *, role="search", rows=slice(None), condition=None):
    """Notes that a run asked for rows that were written before."""
    run, default, masks, items, *_ = written
    journal.add_plan(
        run, 0, role=role, condition=condition or default, masks=masks[rows], items=items[rows]
    )


def test_runs_are_listed_with_what_they_cost(journal):
    """Runs are listed oldest first, with rows, vectors, tokens, columns, items and state."""
    run, *_, items, _, _ = filled(journal)
    observed(journal, run)
    later = journal.begin_run(
        b"later", settings={"k": 3}, components=1, items=items[:2], process="process 2"
    )
    journal.finish_run(later)
    journal.note_search(later, {"method": "pooled"})
    first, second = read_runs(journal)
    assert (first.id, first.digest, first.rows, first.tokens) == (run, b"run".hex(), 12 + 5, 5 + 7)
    assert (first.components, first.process, first.finished) == (NAMES, "process 1", None)
    np.testing.assert_array_equal(first.items, items)
    assert (second.settings, second.search) == ({"k": 3}, {"method": "pooled"})
    assert (second.rows, second.tokens, len(second.items)) == (0, 0, 2)
    assert second.finished is not None


def test_the_newest_run_or_the_one_of_a_digest_is_found(journal):
    """The newest run or the run of a digest is found; a missing run is refused."""
    with pytest.raises(BadInput, match="holds no such run"):
        find_run(journal)
    run, _, _, items, *_ = filled(journal)
    later = journal.begin_run(b"later", settings={}, components=1, items=items, process="p")
    assert find_run(journal).id == later
    assert find_run(journal, b"run".hex()).id == run
    with pytest.raises(BadInput, match="holds no such run"):
        find_run(journal, "00")


@pytest.mark.parametrize("gradients", [False, True])
def test_rows_come_back_as_matrices(journal, gradients):
    """Every row is read under the mask and item that it was written with."""
    written = with_gradients(journal) if gradients else filled(journal)
    *_, responses, slopes = written
    order = np.array([3, 0, 3, 11])
    note_plan(journal, written, rows=order)
    rows = read_run(journal, written[0])
    drawn = np.random.default_rng(0).random((12, 9)) < 0.5
    assert rows.components == NAMES
    np.testing.assert_array_equal(rows.masks[rows.mask_index], drawn[order])
    assert [rows.items[item].number for item in rows.item_index] == order.tolist()
    np.testing.assert_array_equal(rows.responses, responses[order])
    if gradients:
        np.testing.assert_array_equal(rows.gradients, slopes[order])
    else:
        assert rows.gradients is None


def with_gradients(journal):
    """Fills a journal under a condition with gradients and returns what was written."""
    run, _, masks, items, responses, _ = filled(journal)
    condition = journal.condition(Condition(**{**CONDITION.__dict__, "gradients": True}))
    slopes = np.random.default_rng(1).normal(size=(12, 9)).astype(np.float32)
    journal.write(
        run=run, role="search", condition=condition, masks=masks, items=items,
        responses=responses, gradients=slopes,
    )  # fmt: skip
    return run, condition, masks, items, responses, slopes


def test_what_cannot_be_read_is_refused(journal):
    """A role without plans, rows never measured and plans of two conditions are refused."""
    written = filled(journal)
    with pytest.raises(BadInput, match="asked for no rows of its search"):
        read_run(journal, written[0])
    unmeasured = journal.condition(Condition(**{**CONDITION.__dict__, "response": "accuracy"}))
    note_plan(journal, written, role="scores", condition=unmeasured, rows=slice(0, 2))
    with pytest.raises(NotInJournal, match="2 of 2 rows"):
        read_run(journal, written[0], role="scores")
    run, condition, masks, items, *_ = written
    journal.add_plan(run, 1, role="scores", condition=condition, masks=masks, items=items)
    with pytest.raises(BadInput, match="in 2 ways"):
        read_run(journal, run, role="scores")


def test_an_altered_mask_is_never_used(journal):
    """A mask that does not fit its digest raises `JournalDamaged`."""
    written = filled(journal)
    note_plan(journal, written)
    journal._connection.execute("UPDATE masks SET ablated = x'ff80' WHERE id = 2")
    with pytest.raises(JournalDamaged, match="a mask was altered"):
        read_run(journal, written[0])
