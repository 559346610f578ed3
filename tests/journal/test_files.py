"""Files that are damaged, locked or out of reach are refused in one line each."""

import subprocess
import sys

import numpy as np
import pytest
from journals import filled

from broca.errors import BadInput, JournalBusy, JournalDamaged, JournalNotWritable
from broca.journal import Journal
from broca.journal.checking import check


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
def test_broken_files_are_refused(tmp_path, damage):
    """A file that is cut, overwritten or no database is refused as damaged and left unchanged."""
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
    """A write that a kill interrupted is rolled back, for a reader and for a writer."""
    with Journal(tmp_path / "j.sqlite") as journal:
        _, condition, masks, items, responses, _ = filled(journal)
    code = (
        "import os, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA cache_size = 1')\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "connection.execute('DELETE FROM rows')\n"
        "connection.executemany('INSERT INTO batches VALUES (?, 1, 1, 0, ?, ?, 0)',\n"
        "    [(n, 'x' * 500, 'y') for n in range(100, 900)])\n"
        "os.kill(os.getpid(), 9)"
    )
    for read_only in (True, False):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "j.sqlite")], check=False)
        assert (tmp_path / "j.sqlite-journal").exists()
        with Journal(tmp_path / "j.sqlite", read_only=read_only) as journal:
            known, stored = journal.known(condition, masks, items)
            assert known.all()
            np.testing.assert_array_equal(stored, responses)
            assert all(finding.passed for finding in check(journal))


def test_a_second_writer_is_refused_by_name(tmp_path):
    """While one process writes, another may read but not write; afterwards it may write."""
    path = tmp_path / "j.sqlite"
    code = (
        "import sys; from broca.journal import Journal; from broca.errors import BrocaError\n"
        "with Journal(sys.argv[1], read_only=True) as j: print(j.query('SELECT 1'))\n"
        "try: Journal(sys.argv[1]).close(); print('written')\n"
        "except BrocaError as error: print(type(error).__name__, error)\n"
    )

    def second_process():
        command = [sys.executable, "-c", code, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with Journal(path) as journal:
        filled(journal)
        assert "JournalBusy" in (output := second_process())
        assert "written by process 1: wait" in output
        with pytest.raises(JournalBusy):
            Journal(path)
    assert "written" in second_process().splitlines()[-1]


def test_places_that_cannot_be_written_or_read(tmp_path):
    """A path below a file cannot be written, and a missing journal cannot be read."""
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalNotWritable, match="cannot be written"):
        Journal(tmp_path / "file" / "j.sqlite")
    with pytest.raises(BadInput, match="does not exist"):
        Journal(tmp_path / "none.sqlite", read_only=True)
