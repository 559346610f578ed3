"""Rows, outputs and vectors are written once and read back bit for bit, or refused."""

import os
import subprocess
import sys

import numpy as np
import pytest
from journals import CONDITION, DIGESTS, NAMES, filled, observed

from broca.errors import JournalDamaged, JournalNotWritable
from broca.journal import Condition, ItemRecord, Journal
from broca.journal.checking import check


def test_rows_come_back_bit_for_bit(tmp_path):
    """Responses and gradients are equal after reopening; unknown rows are reported as such."""
    with Journal(tmp_path / "j.sqlite") as journal:
        _, condition, masks, items, responses, slopes = filled(journal, gradients=True)
    with Journal(tmp_path / "j.sqlite", read_only=True) as journal:
        known, stored = journal.known(condition, masks, items)
        assert known.all()
        np.testing.assert_array_equal(stored, responses)
        back = journal.gradients(condition, masks, items, components=9)
        np.testing.assert_array_equal(back, slopes)
        known, _ = journal.known(condition, masks, items[::-1].copy())
        assert not known.any()


def test_a_closed_journal_is_one_file(tmp_path):
    """A closed journal is one file beside the empty lock file."""
    with Journal(tmp_path / "j.sqlite") as journal:
        filled(journal)
    assert {file.name for file in tmp_path.iterdir()} == {"j.sqlite", "j.sqlite.lock"}


def test_a_row_is_never_written_twice():
    """A batch with one known row is refused whole."""
    with Journal.in_memory() as journal:
        run, condition, masks, items, responses, _ = filled(journal)
        fresh = journal.items([ItemRecord(b"new", "task", 99)])
        with pytest.raises(JournalDamaged, match="UNIQUE"):
            journal.write(
                run=run,
                role="search",
                condition=condition,
                masks=masks[:2],
                items=np.array([fresh[0], items[1]]),
                responses=responses[:2],
            )
        known, _ = journal.known(condition, masks[:1], fresh)
        assert not known.any()
        assert journal.cost(run) == (12, 5)


def test_keys_are_contents():
    """Another condition or column order gives other ids; equal contents give equal ids."""
    with Journal.in_memory() as journal:
        components = journal.components(NAMES)
        reversed_columns = journal.components(NAMES[::-1])
        masks = np.eye(9, dtype=bool)
        first = journal.masks(masks, components)
        np.testing.assert_array_equal(journal.masks(masks[::-1], components), first[::-1])
        assert not set(first) & set(journal.masks(masks, reversed_columns))
        values = CONDITION.__dict__
        changed = [
            {"weights": "v"}, {"tokenizer": "u"}, {"dtype": "bfloat16"}, {"ablation": "mean"},
            {"scale": 0.5}, {"seed": 1}, {"donors": "d"}, {"response": "accuracy"},
            {"gradients": True},
        ]  # fmt: skip
        ids = {journal.condition(Condition(**{**values, **change})) for change in [{}, *changed]}
        assert len(ids) == 1 + len(changed)


def test_a_changed_response_is_never_used(tmp_path):
    """A response that does not fit its seal raises `JournalDamaged`."""
    with Journal(tmp_path / "j.sqlite") as journal:
        _, condition, masks, items, _, _ = filled(journal)
        journal._connection.execute("UPDATE rows SET response = 1 WHERE item = 3")
        with pytest.raises(JournalDamaged, match=r"altered.*restore it from a copy"):
            journal.known(condition, masks, items)


def test_a_full_disk_loses_only_the_batch(tmp_path):
    """A batch that finds no room is refused whole; SQLite's page limit stands for a full disk."""
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        run, condition, masks, items, responses, _ = filled(journal)
        (pages,) = journal.query("PRAGMA page_count")[0]
        journal._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(JournalNotWritable, match="make room on the disk"):
            filled(journal, rows=2000, seed=1)
        journal._connection.execute("PRAGMA max_page_count = 100000")
        assert all(finding.passed for finding in check(journal))
    with Journal(path) as journal:
        np.testing.assert_array_equal(journal.known(condition, masks, items)[1], responses)
        known, _ = journal.known(condition, masks, items)
        assert known.all()
    assert run == 1


def test_vectors_come_back_bit_for_bit(tmp_path):
    """Vectors of any length are equal after reopening, in any order; unknown ones are None."""
    with Journal(tmp_path / "j.sqlite") as journal:
        run, condition, *_ = filled(journal)
        _, vectors = observed(journal, run)
        assert journal.cost(run) == (12, 5 + 7)
    with Journal(tmp_path / "j.sqlite", read_only=True) as journal:
        back = journal.vectors(condition, [DIGESTS[3], b"?" * 16, DIGESTS[0], DIGESTS[3]])
        assert back[1] is None
        for number, vector in zip((3, 0, 3), (back[0], back[2], back[3]), strict=True):
            assert vector.dtype == np.float32
            np.testing.assert_array_equal(vector, vectors[number])
        assert journal.vectors(condition + 1, DIGESTS) == [None] * 5
        assert journal.vectors(condition, []) == []
        ((size,),) = journal.query("SELECT sum(length(vector)) FROM vectors")
        assert size < sum(vector.nbytes for vector in vectors) / 2


def test_a_vector_is_never_written_twice():
    """A batch with one known vector is refused whole."""
    with Journal.in_memory() as journal:
        run, *_ = filled(journal)
        condition, _ = observed(journal, run)
        with pytest.raises(JournalDamaged, match="UNIQUE"):
            observed(journal, run, digests=[b"new." * 4, DIGESTS[2]])
        assert journal.vectors(condition, [b"new." * 4]) == [None]
        assert journal.cost(run) == (12, 12)
        assert all(finding.passed for finding in check(journal))


def test_a_changed_vector_is_never_used(tmp_path):
    """A vector whose length or bytes were changed raises `JournalDamaged`."""
    with Journal(tmp_path / "j.sqlite") as journal:
        run, *_ = filled(journal)
        condition, _ = observed(journal, run)
        journal._connection.execute("UPDATE vectors SET length = 41 WHERE length = 40")
        journal._connection.execute("UPDATE vectors SET vector = x'00' WHERE length = 80")
        for digest in DIGESTS[1:3]:
            with pytest.raises(JournalDamaged, match=r"altered.*restore it from a copy"):
                journal.vectors(condition, [digest])
        assert journal.vectors(condition, DIGESTS[3:])[0] is not None


def test_a_kill_within_write_vectors_loses_only_that_batch(tmp_path):
    """A kill within a write loses that batch alone, and its vectors can be written again."""
    path = tmp_path / "j.sqlite"
    code = (
        "import os, sys, journals\n"
        "from broca.journal import Journal, store\n"
        "journal = Journal(sys.argv[1])\n"
        "run, *_ = journals.filled(journal)\n"
        "journals.observed(journal, run)\n"
        "seal, left = store.vector_seal, iter(range(3))\n"
        "def dying(*parts):\n"
        "    if next(left, None) is None: os.kill(os.getpid(), 9)\n"
        "    return seal(*parts)\n"
        "store.vector_seal = dying\n"
        "journals.observed(journal, run, digests=[bytes([n + 100]) * 16 for n in range(9)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=environment(), check=False, timeout=60
    )
    assert done.returncode == -9
    later = [bytes([n + 100]) * 16 for n in range(9)]
    with Journal(path) as journal:
        assert all(finding.passed for finding in check(journal))
        condition = journal.condition(CONDITION)
        assert all(vector is not None for vector in journal.vectors(condition, DIGESTS))
        assert journal.vectors(condition, later) == [None] * 9
        assert journal.cost(1) == (12, 12)
        _, vectors = observed(journal, 1, digests=later)
        np.testing.assert_array_equal(journal.vectors(condition, later)[8], vectors[8])


def test_rows_requested_counts_distinct_rows():
    """Repeated rows count once, a row with its gradient three times, an output once, by role."""
    with Journal.in_memory() as journal:
        run, condition, masks, items, _, _ = filled(journal)
        slopes = journal.condition(Condition(**{**CONDITION.__dict__, "gradients": True}))
        plans = [
            ("scores", condition, slice(0, 6)),
            ("scores", condition, slice(4, 8)),
            ("scores", slopes, slice(4, 6)),
            ("scores", slopes, slice(5, 6)),
            ("search", condition, slice(0, 12)),
        ]
        for number, (role, where, rows) in enumerate(plans):
            journal.add_plan(
                run, number, role=role, condition=where, masks=masks[rows], items=items[rows]
            )
        assert journal.rows_requested(run, "scores") == 8 + 3 * 2
        assert journal.rows_requested(run, "search") == 12
        assert journal.rows_requested(run, "locate") == 0
        for rows in (slice(0, 2), slice(1, 4)):
            journal.note_outputs(
                run, role="scores", condition=condition, masks=masks[rows], items=items[rows]
            )
        assert journal.rows_requested(run, "scores") == 8 + 3 * 2 + 4
        journal.note_vectors(run, condition=condition, digests=DIGESTS)
        assert journal.rows_requested(run, "scores") == 8 + 3 * 2 + 4


def test_a_run_that_goes_on_asks_anew():
    """A continued run forgets its requests and keeps what it measured."""
    with Journal.in_memory() as journal:
        run, condition, masks, items, _, _ = filled(journal)
        rows = {"condition": condition, "masks": masks, "items": items}
        journal.add_plan(run, 0, role="search", **rows)
        journal.note_outputs(run, role="search", **rows)
        observed(journal, run)
        again = journal.begin_run(
            b"run", settings={}, components=1, items=items, process="process 2"
        )
        assert again == run
        assert journal.rows_requested(run, "search") == 0
        assert journal.query("SELECT count(*) FROM vector_requests") == [(0,)]
        assert journal.known(condition, masks, items)[0].all()
        assert all(vector is not None for vector in journal.vectors(condition, DIGESTS))


def test_outputs_come_back_as_they_were_written():
    """Outputs are read back equal, missing ones are None, and writing counts as a request."""
    with Journal.in_memory() as journal:
        run, condition, masks, items, _, _ = filled(journal)
        journal.write_outputs(
            run=run,
            role="scores",
            condition=condition,
            masks=masks[3:5],
            items=items[3:5],
            outputs=['["a"]', '["ü"]'],
        )
        back = journal.outputs(condition, masks[:5], items[:5])
        assert back == ['["x"]', None, None, '["a"]', '["ü"]']
        assert journal.rows_requested(run, "scores") == 2


def environment():
    """Returns the environment of a process that can import the tests' helpers."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
