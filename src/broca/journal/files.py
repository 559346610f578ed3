"""Opens journal files: translates SQLite's errors, and admits one writer at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broca.errors import BadInput, JournalBusy, JournalDamaged, JournalError, JournalNotWritable

MEMORY = ":memory:"
"""Name of a journal in memory."""

_WAIT_S = 10.0
"""Seconds that a reader waits for a committing writer."""


@contextmanager
def in_our_words(name: str) -> Iterator[None]:
    """Translates SQLite's errors about a journal.

    Raises:
        JournalNotWritable: The disk is full, or the folder is read-only.
        JournalBusy: Another process locks the journal.
        JournalDamaged: The file is not a database, or is damaged.
        JournalError: SQLite reports another error.
    """
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            raise JournalNotWritable(
                f"journal '{name}' cannot grow ({text}): make room on the disk, then give the same "
                "command again; all committed rows are kept"
            ) from error
        if "readonly" in text or "unable to open" in text:
            raise JournalNotWritable(
                f"journal '{name}' cannot be written ({text}): give `journal` a file in a folder "
                "that can be written"
            ) from error
        if "locked" in text or "busy" in text:
            raise JournalBusy(
                f"journal '{name}' is held by another program ({text}): close it, then give the "
                "same command again"
            ) from error
        if isinstance(error, sqlite3.OperationalError) and "no such" not in text:
            raise JournalError(
                f"journal '{name}' cannot be used ({text}): `broca journal {name} --check` says "
                "more"
            ) from error
        raise damaged(name, text) from error


def damaged(name: str, what: str) -> JournalDamaged:
    """Returns the error for a damaged journal."""
    return JournalDamaged(
        f"journal '{name}' is damaged ({what}): restore it from a copy, or move it away and give "
        "the same command again, which measures its rows anew"
    )


def connect(name: str, *, write: bool) -> sqlite3.Connection:
    """Connects in autocommit mode.

    Raises:
        BadInput: A journal to read does not exist.
        JournalError: The journal cannot be opened.
    """
    with in_our_words(name):
        if name == MEMORY:
            return sqlite3.connect(MEMORY, isolation_level=None)
        if not write:
            if not Path(name).is_file():
                raise BadInput(f"journal '{name}' does not exist: check the path")
            connection = _reader(name)
        else:
            connection = sqlite3.connect(name, isolation_level=None, timeout=_WAIT_S)
            # commits are on disk before the next batch begins
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection


def _reader(name: str) -> sqlite3.Connection:
    """Returns a connection for reading, after rolling back what a killed writer left unfinished."""
    address = Path(name).absolute().as_uri()
    for mode in ("ro", "rw"):
        connection = sqlite3.connect(
            f"{address}?mode={mode}", uri=True, isolation_level=None, timeout=_WAIT_S
        )
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if mode == "rw" or "readonly" not in str(error):
                raise
        except BaseException:
            connection.close()
            raise
        else:
            break
    return connection


def require_sound(connection: sqlite3.Connection, *, name: str, indexes: bool) -> None:
    """Lets SQLite check its pages (and with `indexes` that these fit their tables).

    Raises:
        JournalDamaged: SQLite found a fault.
    """
    with in_our_words(name):
        pragma = "integrity_check" if indexes else "quick_check"
        (verdict,) = connection.execute(f"PRAGMA {pragma}(1)").fetchone()
    if verdict != "ok":
        raise damaged(name, verdict.splitlines()[-1])


class WriterLock:
    """The lock of a journal's writer, which the system releases when the process ends.

    The lock is an open transaction on a file beside the journal, so that it works on every system
    of SQLite. The empty file is kept.

    Args:
        name: The journal.

    Raises:
        JournalBusy: Another process writes to it.
        JournalNotWritable: The file beside it cannot be created.
    """

    def __init__(self, name: str) -> None:
        self._connection: sqlite3.Connection | None = None
        if name == MEMORY:
            return
        with in_our_words(name):
            self._connection = sqlite3.connect(f"{name}.lock", isolation_level=None, timeout=0)
        try:
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            self._connection.close()
            if "locked" not in str(error):
                with in_our_words(name):
                    raise
            raise JournalBusy(
                f"journal '{name}' is being written by {_writer(name)}: wait for its end, or give "
                "another `journal`"
            ) from error

    def close(self) -> None:
        """Releases the lock."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _writer(name: str) -> str:
    """Returns the writer, by the journal's newest unfinished run."""
    try:
        connection = connect(name, write=False)
        row = connection.execute(
            "SELECT process FROM runs WHERE finished IS NULL ORDER BY id DESC LIMIT 1"
        ).fetchone()
        connection.close()
    except (sqlite3.Error, BadInput, JournalError):
        row = None
    return str(row[0]) if row else "another process"
