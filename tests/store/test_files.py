"""Files that are damaged, locked or out of reach are refused in one line each."""

import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from journals import TABLES, filled, observed, totals

from broca.errors import (
    BadInput,
    JournalBusy,
    JournalDamaged,
    JournalError,
    JournalNotWritable,
    JournalVersion,
)
from broca.store import Journal


@pytest.fixture
def path(tmp_path):
    """A journal with rows, gradients, an output, vectors and a plan."""
    with Journal(tmp_path / "j.sqlite") as journal:
        run, condition, keys, *_ = filled(journal, gradients=True)
        observed(journal, run)
        journal.add_plan(run, role="search", condition=condition, keys=keys)
    return tmp_path / "j.sqlite"


def lines_of(path):
    """Returns every line of every table."""
    with Journal(path, read_only=True) as journal:
        return {table: list(journal.lines(table)) for table in TABLES}


def test_a_flipped_bit_is_noticed(path):
    """A journal of which one bit is flipped reads the same, or is refused."""
    content = path.read_bytes()
    expected = lines_of(path)
    rng = np.random.default_rng(0)
    used = np.flatnonzero(np.frombuffer(content, dtype=np.uint8))  # most of a small file is empty
    places = [*range(100), *rng.choice(used, 300), *rng.integers(0, len(content), 100)]
    messages = []
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        try:
            assert lines_of(path) == expected
        except JournalError as error:
            messages.append(str(error))
    assert len(messages) > len(places) / 2
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("conditions", "text = replace(text, 'zero', 'mean')"),
        ("components", "names = replace(names, 'L0H0', 'L9H0')"),
        ("items", "prompt = 'another'"),
        ("masks", "ablated = x'ff80' WHERE id = 2"),
        ("runs", "settings = '{\"k\": 1}'"),
        ("plans", "role = 'scores'"),
        ("batches", "responses = zeroblob(96) WHERE kind = 'rows'"),
        ("batches", "keys = zeroblob(96) WHERE kind = 'rows'"),
        ("batches", "tokens = 6"),
        ("contents", "content = x'00'"),
    ],
)
def test_what_was_altered_is_never_used(path, table, change):
    """A line that does not fit its checksum is refused, in every table."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET {change}")
    connection.close()
    with pytest.raises(JournalDamaged, match=rf"of {table} was altered.*restore it from a copy"):
        lines_of(path)


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
def test_broken_files_are_refused(path, damage):
    """A file that is cut, overwritten or no database is refused as damaged and left unchanged."""
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


@pytest.mark.parametrize("read_only", [True, False])
def test_other_databases_and_versions_are_refused(tmp_path, path, read_only):
    """Another program's database and another version's journal are refused and left unchanged."""
    for statement, place, refusal in (
        ("CREATE TABLE notes (text)", tmp_path / "notes.sqlite", JournalDamaged),
        ("PRAGMA user_version = 2", path, JournalVersion),
    ):
        with sqlite3.connect(place) as connection:
            connection.execute(statement)
        connection.close()
        before = place.read_bytes()
        with pytest.raises(refusal, match=r"no journal of broca|version 2.*or another `journal`"):
            Journal(place, read_only=read_only)
        assert place.read_bytes() == before


def test_a_writer_killed_within_a_write_is_taken_back(path):
    """A write that a kill interrupted is rolled back, for a reader and for a writer."""
    expected = lines_of(path)
    code = (
        "import os, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA cache_size = 1')\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "connection.execute('DELETE FROM batches')\n"
        "connection.executemany('INSERT INTO items VALUES (?, 1, 1, 0, ?, ?, 0)',\n"
        "    [(n, 'x' * 500, 'y') for n in range(100, 900)])\n"
        "os.kill(os.getpid(), 9)"
    )
    for read_only in (True, False):
        subprocess.run([sys.executable, "-c", code, str(path)], check=False)
        assert path.with_name("j.sqlite-journal").exists()
        Journal(path, read_only=read_only).close()
        assert lines_of(path) == expected


def test_a_second_writer_is_refused_by_name(path):
    """While one process writes, another may read but not write; afterwards it may write."""
    code = (
        "import sys; from broca.store import Journal; from broca.errors import BrocaError\n"
        "with Journal(sys.argv[1], read_only=True) as j: print(len(list(j.lines('batches'))))\n"
        "try: Journal(sys.argv[1]).close(); print('written')\n"
        "except BrocaError as error: print(type(error).__name__, error)\n"
    )

    def second_process():
        command = [sys.executable, "-c", code, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with Journal(path) as journal:
        filled(journal, seed=1)
        count, refusal = second_process().splitlines()
        assert count == "5"
        assert refusal.startswith("JournalBusy")
        assert "written by process 1: wait" in refusal
        with pytest.raises(JournalBusy):
            Journal(path)
    assert second_process().splitlines()[-1] == "written"


def test_places_that_cannot_be_written_or_read(tmp_path, path):
    """A place below a file and a read-only folder cannot be written; a missing file not be read."""
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalNotWritable, match="cannot be written"):
        Journal(tmp_path / "file" / "j.sqlite")
    with pytest.raises(BadInput, match="does not exist"):
        Journal(tmp_path / "none.sqlite", read_only=True)
    assert not (tmp_path / "none.sqlite").exists()
    if os.geteuid() == 0:
        return  # root writes everywhere
    tmp_path.chmod(0o500)
    try:
        assert totals(path)["rows"] == 12
        with pytest.raises(JournalNotWritable, match="in a folder that can be written"):
            Journal(tmp_path / "new.sqlite")
    finally:
        tmp_path.chmod(0o700)
