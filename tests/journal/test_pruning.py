"""Pruning keeps what runs asked for and drops everything else."""

import subprocess
import sys

import numpy as np
import pytest
from journals import DIGESTS, filled, observed, of_version_1

from broca.errors import BadInput, JournalBusy
from broca.journal import ItemRecord, Journal, Pruned, prune, read_run, read_runs
from broca.journal.checking import check


def shared(journal, *, finished=True):
    """Writes twelve rows and five vectors of one run, of which another asks for four and two.

    The first run asks for its first two rows and for the outputs of the tenth and eleventh.
    Returns the rows' condition, masks and items.
    """
    first, condition, masks, items, *_ = filled(journal, gradients=True)
    observed(journal, first)
    second = journal.begin_run(
        b"other", settings={}, components=1, items=items[:6], process="process 2"
    )

    def rows(start, end):
        return {"condition": condition, "masks": masks[start:end], "items": items[start:end]}

    journal.add_plan(first, 0, role="search", **rows(0, 2))
    journal.write_outputs(run=first, role="scores", **rows(9, 11), outputs=['["y"]', '["z"]'])
    journal.add_plan(second, 0, role="search", **rows(1, 5))
    journal.note_vectors(second, condition=condition, digests=DIGESTS[:2])
    if finished:
        journal.finish_run(first)
        journal.finish_run(second)
    return condition, masks, items


def count(journal, table):
    """Returns the number of rows of a table."""
    return journal.query(f"SELECT count(*) FROM {table}")[0][0]


def test_what_no_run_asked_for_goes(tmp_path):
    """Rows that no run asked for go with their gradients and masks; the others stay equal."""
    with Journal(tmp_path / "j.sqlite") as journal:
        condition, masks, items = shared(journal)
        ((stray,),) = [journal.items([ItemRecord(b"never measured", "task", 99)])]
        before = journal.known(condition, masks, items)[1]
        slopes = journal.gradients(condition, masks[:5], items[:5], components=9)
        costs = [(run.rows, run.tokens) for run in read_runs(journal)]
        pruned = prune(journal)
        assert (pruned.rows, pruned.vectors, pruned.outputs) == (7, 0, 0)
        assert all(finding.passed for finding in check(journal))
        known, responses = journal.known(condition, masks, items)
        np.testing.assert_array_equal(known, [True] * 5 + [False] * 7)
        np.testing.assert_array_equal(responses[:5], before[:5])
        np.testing.assert_array_equal(
            journal.gradients(condition, masks[:5], items[:5], components=9), slopes
        )
        assert count(journal, "gradients") == 5
        assert journal.outputs(condition, masks, items)[9:11] == ['["y"]', '["z"]']
        assert journal.outputs(condition, masks, items)[0] == '["x"]'
        assert all(vector is not None for vector in journal.vectors(condition, DIGESTS))
        # five rows and two outputs have masks; the bank of the first run has all items
        assert count(journal, "masks") == 7
        assert stray not in {item for (item,) in journal.query("SELECT id FROM items")}
        assert count(journal, "items") == 12
        assert [(run.rows, run.tokens) for run in read_runs(journal)] == costs
        np.testing.assert_array_equal(read_run(journal, 2).responses, before[1:5])
        assert prune(journal) == Pruned(0, 0, 0, 0)


def test_a_forgotten_run_leaves_what_others_asked_for(tmp_path):
    """Forgetting a run removes its costs and what it alone asked for."""
    with Journal(tmp_path / "j.sqlite") as journal:
        condition, masks, items = shared(journal)
        pruned = prune(journal, forget=[1])
        assert (pruned.rows, pruned.vectors, pruned.outputs) == (8, 3, 3)
        assert all(finding.passed for finding in check(journal))
        assert [run.id for run in read_runs(journal)] == [2]
        known, _ = journal.known(condition, masks, items)
        np.testing.assert_array_equal(known, [False] + [True] * 4 + [False] * 7)
        vectors = journal.vectors(condition, DIGESTS)
        assert [vector is not None for vector in vectors] == [True, True, False, False, False]
        assert count(journal, "items") == 6
        assert len(read_run(journal, 2).responses) == 4
        # what was dropped can be measured and written again
        filled_again = journal.begin_run(
            b"third", settings={}, components=1, items=items[:6], process="process 3"
        )
        journal.write_vectors(
            run=filled_again, condition=condition, kind="attribution",
            digests=DIGESTS[4:], vectors=[np.ones(3, dtype=np.float32)],
        )  # fmt: skip
        assert all(finding.passed for finding in check(journal))
    with Journal(tmp_path / "j.sqlite") as journal:
        pruned = prune(journal, forget=[2, 3])
        assert (pruned.rows, pruned.vectors) == (4, 3)
        for table in ("rows", "vectors", "outputs", "gradients", "masks", "items", "conditions",
                      "components", "runs", "plans", "batches", "output_requests",
                      "vector_requests"):  # fmt: skip
            assert count(journal, table) == 0, table


def test_what_an_unfinished_run_measured_stays():
    """What an unfinished run measured is kept, because its list of requests may be incomplete."""
    with Journal.in_memory() as journal:
        condition, masks, items = shared(journal, finished=False)
        journal.begin_run(b"run", settings={}, components=1, items=items, process="process 3")
        assert prune(journal) == Pruned(0, 0, 0, 0)
        assert journal.known(condition, masks, items)[0].all()
        assert all(vector is not None for vector in journal.vectors(condition, DIGESTS))
        assert journal.outputs(condition, masks, items)[9] is not None
        journal.finish_run(1)
        pruned = prune(journal)
        assert (pruned.rows, pruned.vectors, pruned.outputs) == (8, 3, 3)


def test_the_file_shrinks_by_what_is_said(tmp_path):
    """The file shrinks by the number of bytes that pruning reports."""
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        for seed in range(20):
            run, *_ = filled(journal, rows=100, seed=seed)
        journal.finish_run(run)
    before = path.stat().st_size
    with Journal(path) as journal:
        pruned = prune(journal)
    assert pruned.rows == 2000
    assert path.stat().st_size == before - pruned.bytes
    assert pruned.bytes > before / 2


def test_version_1_is_pruned_of_nothing_that_its_runs_need(tmp_path):
    """In a journal of version 1, outputs without rows and an unfinished run's rows are kept."""
    with Journal(of_version_1(tmp_path / "j.sqlite")) as journal:
        rows = journal.query("SELECT * FROM rows")
        outputs = journal.query("SELECT * FROM outputs")
        pruned = prune(journal)
        assert (pruned.rows, pruned.vectors, pruned.outputs) == (0, 0, 0)
        assert journal.query("SELECT * FROM rows") == rows
        assert journal.query("SELECT * FROM outputs") == outputs
        pruned = prune(journal, forget=[1])
        assert (pruned.rows, pruned.outputs) == (10, 0)
        assert all(finding.passed for finding in check(journal))
        journal.finish_run(2)
        assert prune(journal).outputs == 3
        assert len(read_run(journal, 2).responses) == 2


def test_an_unknown_run_cannot_be_forgotten():
    """Forgetting an unknown run is refused with the known ones, and nothing changes."""
    with Journal.in_memory() as journal:
        shared(journal)
        with pytest.raises(BadInput, match=r"`forget` names run 7.* holds 1, 2"):
            prune(journal, forget=[1, 7])
        assert [run.id for run in read_runs(journal)] == [1, 2]
        assert count(journal, "rows") == 12


def test_a_journal_that_is_being_written_is_not_pruned(tmp_path):
    """A journal that another process writes cannot be pruned."""
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        shared(journal)
        journal.begin_run(b"run", settings={}, components=1, items=np.arange(1, 3), process="me")
        code = (
            "import sys; from broca.cli.main import main\n"
            "sys.argv = ['broca', 'journal', sys.argv[1], '--prune']\n"
            "main()"
        )
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "is being written by me" in done.stderr
        with pytest.raises(JournalBusy):
            Journal(path)
        assert count(journal, "rows") == 12
