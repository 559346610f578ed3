"""Journals of older versions are migrated, or read as they are."""

import sqlite3

import numpy as np
import pytest
from journals import DIGESTS, filled, observed, of_version_1

from broca.errors import JournalDamaged, JournalError, JournalNotWritable, JournalTooNew
from broca.journal import Journal, Replay, prune, read_run, read_runs, schema
from broca.journal.checking import check


def test_another_programs_database_is_refused(tmp_path):
    """A database of another program is refused and left unchanged."""
    with sqlite3.connect(tmp_path / "j.sqlite") as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = (tmp_path / "j.sqlite").read_bytes()
    with pytest.raises(JournalDamaged, match="no journal of broca"):
        Journal(tmp_path / "j.sqlite")
    assert (tmp_path / "j.sqlite").read_bytes() == before


def test_a_later_version_is_refused(tmp_path):
    """A journal of a later version is refused with that version's number."""
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


def require_content_of_version_1(journal):
    """Asserts that everything in the file of version 1 is there, bit for bit."""
    assert all(finding.passed for finding in check(journal))
    first, second = read_runs(journal)
    assert (first.rows, first.tokens, second.rows, second.tokens) == (10, 110, 2, 20)
    assert second.finished is None
    assert first.settings == {"task": "task", "method": "greedy", "seed": 0}
    scores = read_run(journal, 1, role="scores")
    np.testing.assert_array_equal(scores.responses, [1, 0, 1, 0])
    np.testing.assert_array_equal(scores.masks, np.eye(4, dtype=bool))
    assert scores.items[3].prompt == "3 + 1 ="
    ids = np.arange(1, 5)
    known, responses = journal.known(1, ids, ids)
    assert known.all()
    np.testing.assert_array_equal(responses, [0.1, 0.2, -0.3, 1 / 3])
    np.testing.assert_array_equal(
        journal.gradients(2, ids[:2], ids[:2], components=4),
        (np.arange(8).reshape(2, 4) / 3).astype(np.float32),
    )
    assert journal.outputs(3, np.array([1, 1, 2, 2]), np.array([1, 3, 4, 1])) == [
        '[{"text": "kept"}]', '[{"text": "a"}]', '[{"text": "b"}]', None,
    ]  # fmt: skip
    assert journal.vectors(1, DIGESTS) == [None] * 5


def test_version_1_keeps_everything(tmp_path):
    """A migrated journal of version 1 has its old content, reopened too, and takes new rows."""
    path = of_version_1(tmp_path / "j.sqlite")
    with Journal(path) as journal:
        require_content_of_version_1(journal)
        assert journal.query("PRAGMA user_version") == [(2,)]
        # outputs without a row belong to the run that wrote a batch without rows
        assert journal.rows_requested(1, "scores") == 4 + 2
        assert journal.rows_requested(1, "search") == 4 + 3 * 2
    with Journal(path) as journal:
        require_content_of_version_1(journal)
        condition, vectors = observed(journal, 2)
        np.testing.assert_array_equal(journal.vectors(condition, DIGESTS)[4], vectors[4])
        assert all(finding.passed for finding in check(journal))


def test_version_1_is_read_without_a_change(tmp_path):
    """A journal of version 1 on a read-only file is read without any change to the folder."""
    path = of_version_1(tmp_path / "j.sqlite")
    path.chmod(0o444)
    before = path.read_bytes()
    with Journal(path, read_only=True) as journal:
        require_content_of_version_1(journal)
        replay = Replay(journal, 1, components=read_runs(journal)[0].components)
        assert replay is not None
        for write in (prune, lambda journal: observed(journal, 1)):
            with pytest.raises(JournalNotWritable, match="open for reading only"):
                write(journal)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["j.sqlite"]


def test_a_migration_that_ends_early_changes_nothing(tmp_path, monkeypatch):
    """A migration that fails changes nothing, and the next opening repeats it."""
    path = of_version_1(tmp_path / "j.sqlite")
    broken = schema.MIGRATIONS[1] + "INSERT INTO no_table VALUES (1);"
    monkeypatch.setattr(schema, "MIGRATIONS", (schema.MIGRATIONS[0], broken))
    with pytest.raises(JournalError):
        Journal(path)
    with Journal(path, read_only=True) as journal:
        assert journal.query("PRAGMA user_version") == [(1,)]
        require_content_of_version_1(journal)
    monkeypatch.undo()
    with Journal(path) as journal:
        require_content_of_version_1(journal)
