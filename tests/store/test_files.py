"""Files that are damaged, locked or out of reach are refused in one line each."""

import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from dying import die, killed
from journals import TABLES, filled, observed, totals

from broca.errors import (
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


def overwritten(content):
    """Returns a database of which a byte in every half kilobyte is flipped."""
    changed = bytearray(content)
    for place in range(4096, len(changed), 512):
        changed[place] ^= 0xFF
    return bytes(changed)


def numbered(content, place):
    """Returns a database with the number 2 at a place of its header."""
    return content[:place] + (2).to_bytes(4) + content[place + 4 :]


@pytest.mark.parametrize(
    ("change", "refusal", "message"),
    [
        (lambda content: content[: len(content) // 2], JournalDamaged, "j.sqlite' is damaged"),
        (overwritten, JournalDamaged, "j.sqlite' is damaged"),
        (lambda _: b"these are my notes\n" * 300, JournalDamaged, "j.sqlite' is damaged"),
        (lambda content: numbered(content, 68), JournalDamaged, "no journal of broca"),
        (lambda content: numbered(content, 60), JournalVersion, "version 2.*another `journal`"),
    ],
    ids=["cut", "overwritten", "text", "another program's", "another version"],
)
def test_other_files_are_refused(path, change, refusal, message):
    """A damaged file, another program's and another version's are refused and left unchanged."""
    content = change(path.read_bytes())
    path.write_bytes(content)
    for read_only in (True, False):
        with pytest.raises(refusal, match=message):
            Journal(path, read_only=read_only)
        assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["j.sqlite", "j.sqlite.lock"])
def test_a_link_in_place_of_a_journal_or_its_lock_is_refused(tmp_path, name):
    """The file to which it leads is not written."""
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / name).symlink_to(tmp_path / "mine.txt")
    with pytest.raises(JournalNotWritable, match=r"a link|symbolic links"):
        Journal(tmp_path / "j.sqlite")
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_writer_killed_within_a_write_is_taken_back(path):
    """A write that a kill interrupted is rolled back, for a reader and for a writer."""
    expected = lines_of(path)

    def doomed():
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM batches")
        rows = [(n, "x" * 500, "y") for n in range(100, 900)]
        connection.executemany("INSERT INTO items VALUES (?, 1, 1, 0, ?, ?, 0)", rows)
        die()

    for read_only in (True, False):
        killed(doomed)
        assert path.with_name("j.sqlite-journal").exists()
        Journal(path, read_only=read_only).close()
        assert lines_of(path) == expected


def test_a_rollback_that_would_delete_a_file_is_refused(path, tmp_path):
    """So is a pipe in its place, for whose writer SQLite would wait."""
    left, link = path.with_name("j.sqlite-journal"), tmp_path / "link.sqlite"
    link.symlink_to(path)
    left.write_bytes(b"\1" * 600 + bytes.fromhex("d9d505f920a163d7"))
    for name, read_only in ((path, True), (path, False), (link, True)):
        with pytest.raises(JournalDamaged, match="beside it was not written by broca"):
            Journal(name, read_only=read_only)
    left.unlink()
    os.mkfifo(left)
    with pytest.raises(JournalDamaged, match="beside it was not written by broca"):
        Journal(path)


def test_a_second_writer_is_refused(path):
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
        assert f"written by process {os.getpid()} on " in refusal
        with pytest.raises(JournalBusy):
            Journal(path)
    assert second_process().splitlines()[-1] == "written"


def test_a_journal_that_is_removed_or_replaced_takes_no_more(path):
    """A writer whose file is gone from its path says so at its next transaction."""
    with Journal(path) as journal:
        filled(journal, seed=1)
        content = path.rename(path.with_name("away"))
        for replaced in (False, True):
            if replaced:
                path.write_bytes(content.read_bytes())
            with pytest.raises(JournalNotWritable, match="was removed or replaced"):
                filled(journal, seed=2)


def test_places_that_cannot_be_written(tmp_path, path):
    """A place below a file and a read-only folder cannot be written; a read-only file is read."""
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalNotWritable, match="cannot be written"):
        Journal(tmp_path / "file" / "j.sqlite")
    if os.geteuid() == 0:
        return  # root writes everywhere
    tmp_path.chmod(0o500)
    try:
        assert totals(path)["rows"] == 12
        with pytest.raises(JournalNotWritable, match="in a folder that can be written"):
            Journal(tmp_path / "new.sqlite")
    finally:
        tmp_path.chmod(0o700)
