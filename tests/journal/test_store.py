"""Rows go in once, come out as they were, and nothing wrong passes in silence."""

import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from broca.errors import (
    BadInput,
    JournalBusy,
    JournalDamaged,
    JournalNotWritable,
    JournalTooNew,
)
from broca.journal import Condition, ItemRecord, Journal, schema
from broca.journal.checking import check

NAMES = ("L0H0", "L0H1", "L1H0", "L1H1", "L2H0", "L2H1", "L3H0", "L3H1", "L4H0")
CONDITION = Condition("w", "t", "float32", "zero", 0.0, 0, "", "margin")


def filled(journal, *, rows=12, seed=0, gradients=False):
    """Writes one batch of random rows and returns all that went in."""
    rng = np.random.default_rng(seed)
    components = journal.components(NAMES)
    masks = journal.masks(rng.random((rows, 9)) < 0.5, components)
    items = journal.items([ItemRecord(f"{seed} {n}".encode(), "task", n) for n in range(rows)])
    run = journal.begin_run(
        b"run", settings={}, components=components, items=items, process="process 1"
    )
    condition = journal.condition(CONDITION)
    responses = rng.normal(size=rows)
    slopes = rng.normal(size=(rows, 9)).astype(np.float32) if gradients else None
    journal.write(
        run=run,
        role="search",
        condition=condition,
        masks=masks,
        items=items,
        responses=responses,
        gradients=slopes,
        outputs={0: '["x"]'},
        tokens=5,
    )
    return run, condition, masks, items, responses, slopes


def test_rows_come_back_bit_for_bit(tmp_path):
    """After closing and opening again, with their gradients; unknown ones are reported so."""
    with Journal(tmp_path / "j.sqlite") as journal:
        _, condition, masks, items, responses, slopes = filled(journal, gradients=True)
    with Journal(tmp_path / "j.sqlite", read_only=True) as journal:
        there, found = journal.known(condition, masks, items)
        assert there.all()
        np.testing.assert_array_equal(found, responses)
        back = journal.gradients(condition, masks, items, components=9)
        np.testing.assert_array_equal(back, slopes)
        there, _ = journal.known(condition, masks, items[::-1].copy())
        assert not there.any()


def test_a_closed_journal_is_one_file(tmp_path):
    """Which can be copied; only the empty file of the lock lies beside it."""
    with Journal(tmp_path / "j.sqlite") as journal:
        filled(journal)
    assert {one.name for one in tmp_path.iterdir()} == {"j.sqlite", "j.sqlite.lock"}


def test_a_row_is_never_written_twice():
    """The second batch is refused whole."""
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
        there, _ = journal.known(condition, masks[:1], fresh)
        assert not there.any()
        assert journal.cost(run) == (12, 5)


def test_keys_are_contents():
    """Other weights, ablation, response or columns are other rows; ids are stable."""
    with Journal.in_memory() as journal:
        components = journal.components(NAMES)
        other = journal.components(NAMES[::-1])
        masks = np.eye(9, dtype=bool)
        first = journal.masks(masks, components)
        np.testing.assert_array_equal(journal.masks(masks[::-1], components), first[::-1])
        assert not set(first) & set(journal.masks(masks, other))
        values = CONDITION.__dict__
        changed = [
            {"weights": "v"}, {"tokenizer": "u"}, {"dtype": "bfloat16"}, {"ablation": "mean"},
            {"scale": 0.5}, {"seed": 1}, {"donors": "d"}, {"response": "accuracy"},
            {"gradients": True},
        ]  # fmt: skip
        ids = {journal.condition(Condition(**{**values, **one})) for one in [{}, *changed]}
        assert len(ids) == 1 + len(changed)


@pytest.mark.parametrize("table", ["rows", "masks", "gradients", "conditions"])
def test_check_finds_a_changed_value(tmp_path, table):
    """Even one that SQLite itself cannot see."""
    with Journal(tmp_path / "j.sqlite") as journal:
        filled(journal, gradients=True)
        assert all(one.passed for one in check(journal))
    changes = {
        "rows": "UPDATE rows SET response = response + 1e-12 WHERE item = 3",
        "masks": "UPDATE masks SET ablated = x'ff80' WHERE id = 2",
        "gradients": "UPDATE gradients SET gradient = zeroblob(36) WHERE item = 3",
        "conditions": "UPDATE conditions SET scale = 0.25",
    }
    with sqlite3.connect(tmp_path / "j.sqlite") as connection:
        assert connection.execute(changes[table]).rowcount == 1
    connection.close()
    with Journal(tmp_path / "j.sqlite", read_only=True) as journal:
        wrong = [one for one in check(journal) if not one.passed]
    assert len(wrong) == 1
    assert "altered" in wrong[0].wrong


def test_a_changed_response_is_never_used(tmp_path):
    """The row's seal does not fit."""
    with Journal(tmp_path / "j.sqlite") as journal:
        _, condition, masks, items, _, _ = filled(journal)
        journal._connection.execute("UPDATE rows SET response = 1 WHERE item = 3")
        with pytest.raises(JournalDamaged, match=r"altered.*restore it from a copy"):
            journal.known(condition, masks, items)


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
def test_broken_files_are_refused(tmp_path, damage):
    """Cut short, overwritten in the middle, or no database at all: one line each."""
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        for seed in range(20):
            filled(journal, rows=100, seed=seed)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        for place in range(4096, len(content), 512):
            content[place] ^= 0xFF
    else:
        content = bytearray(b"these are my notes\n" * 300)
    path.write_bytes(content)
    with pytest.raises(JournalDamaged, match=r"j\.sqlite' is damaged"):
        Journal(path)
    assert path.read_bytes() == content


def test_a_writer_killed_within_a_write_is_taken_back(tmp_path):
    """Where it was about to change the kind of file too: readers and writers go on."""
    with Journal(tmp_path / "j.sqlite") as journal:
        _, condition, masks, items, responses, _ = filled(journal)
    code = (
        "import os, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA cache_size = 1')\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "connection.execute('DELETE FROM rows')\n"
        "connection.executemany('INSERT INTO batches VALUES (?, 1, 1, 0, ?, ?)',\n"
        "    [(n, 'x' * 500, 'y') for n in range(100, 900)])\n"
        "os.kill(os.getpid(), 9)"
    )
    for read_only in (True, False):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "j.sqlite")], check=False)
        assert (tmp_path / "j.sqlite-journal").exists()
        with Journal(tmp_path / "j.sqlite", read_only=read_only) as journal:
            there, found = journal.known(condition, masks, items)
            assert there.all()
            np.testing.assert_array_equal(found, responses)
            assert all(one.passed for one in check(journal))


def test_another_programs_database_is_refused(tmp_path):
    """And is left alone."""
    with sqlite3.connect(tmp_path / "j.sqlite") as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(JournalDamaged, match="no journal of broca"):
        Journal(tmp_path / "j.sqlite")


def test_a_later_version_is_refused(tmp_path):
    """With the version's number."""
    with Journal(tmp_path / "j.sqlite") as journal:
        journal._connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with pytest.raises(JournalTooNew, match=f"version {schema.VERSION + 1}"):
        Journal(tmp_path / "j.sqlite")


def test_migrations_run_one_by_one(tmp_path, monkeypatch):
    """A journal of the present version keeps its rows when the next step is added."""
    with Journal(tmp_path / "j.sqlite") as journal:
        _, condition, masks, items, responses, _ = filled(journal)
    step = "ALTER TABLE runs ADD COLUMN remark TEXT"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with Journal(tmp_path / "j.sqlite") as journal:
        assert journal.query("SELECT remark FROM runs") == [(None,)]
        np.testing.assert_array_equal(journal.known(condition, masks, items)[1], responses)


def test_a_second_writer_is_refused_by_name(tmp_path):
    """Another process is told who writes; it may read meanwhile; afterwards it may write."""
    path = tmp_path / "j.sqlite"
    code = (
        "import sys; from broca.journal import Journal; from broca.errors import BrocaError\n"
        "with Journal(sys.argv[1], read_only=True) as j: print(j.query('SELECT 1'))\n"
        "try: Journal(sys.argv[1]).close(); print('written')\n"
        "except BrocaError as error: print(type(error).__name__, error)\n"
    )

    def other():
        command = [sys.executable, "-c", code, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with Journal(path) as journal:
        filled(journal)
        assert "JournalBusy" in (said := other())
        assert "written by process 1: wait" in said
        with pytest.raises(JournalBusy):
            Journal(path)
    assert "written" in other().splitlines()[-1]


def test_a_full_disk_loses_only_the_batch(tmp_path):
    """SQLite's own refusal to grow stands for the disk's; what was committed stays."""
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        run, condition, masks, items, responses, _ = filled(journal)
        (pages,) = journal.query("PRAGMA page_count")[0]
        journal._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(JournalNotWritable, match="make room on the disk"):
            filled(journal, rows=2000, seed=1)
        journal._connection.execute("PRAGMA max_page_count = 100000")
        assert all(one.passed for one in check(journal))
    with Journal(path) as journal:
        np.testing.assert_array_equal(journal.known(condition, masks, items)[1], responses)
        there, _ = journal.known(condition, masks, items)
        assert there.all()
    assert run == 1


def test_places_that_cannot_be_written_or_read(tmp_path):
    """A folder that is a file; a journal to read that does not exist."""
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalNotWritable, match="cannot be written"):
        Journal(tmp_path / "file" / "j.sqlite")
    with pytest.raises(BadInput, match="does not exist"):
        Journal(tmp_path / "none.sqlite", read_only=True)
