"""Opens journal files: translates SQLite's errors, and admits one writer at a time."""

import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname

from broca.errors import BadInput, JournalBusy, JournalDamaged, JournalNotWritable

MEMORY = ":memory:"
"""Name of a journal in memory."""

_WAIT_S = 10.0
"""Seconds that a reader waits for a committing writer."""


@contextmanager
def in_our_words(name: str) -> Iterator[None]:
    """Translates SQLite's errors about a journal.

    Raises:
        JournalNotWritable: The disk is full, or the folder is read-only.
        JournalBusy: Another program locks the file.
        JournalDamaged: The file is not a database, or is damaged.
    """
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite's message repeats an altered text
        raise damaged(name, str(error)) from error
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
        # SQLite waits for the writer of a pipe, and deletes the file that is named at the end of a
        # rollback journal of several databases, which broca never writes
        left = Path(f"{os.path.realpath(name)}-journal")
        if left.is_fifo() or _end_of(left) == bytes.fromhex("d9d505f920a163d7"):
            raise damaged(name, f"'{left.name}' beside it was not written by broca")
        if write:
            connection = sqlite3.connect(name, isolation_level=None, timeout=_WAIT_S)
            # commits are on disk before the next batch begins
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            return connection
        if not Path(name).is_file():
            raise BadInput(f"journal '{name}' does not exist: check the path")
        address = Path(name).absolute().as_uri()
        for mode in ("ro", "rw"):  # only "rw" can roll back what a killed writer left unfinished
            connection = sqlite3.connect(
                f"{address}?mode={mode}", uri=True, isolation_level=None, timeout=_WAIT_S
            )
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                break
            except sqlite3.Error as error:
                connection.close()
                if mode == "rw" or "readonly" not in str(error):
                    raise
        return connection


def _end_of(file: Path) -> bytes:
    """Returns the last 8 bytes of a file; none if it is shorter, or cannot be opened."""
    with suppress(OSError), file.open("rb") as content:
        content.seek(-8, os.SEEK_END)
        return content.read(8)
    return b""


class WriterLock:
    """The lock of a journal's writer, which the system releases when the process ends.

    It is a lock of the system on a file beside the journal, which names the process.

    Args:
        name: The journal.

    Raises:
        JournalBusy: Another process writes to it.
        JournalNotWritable: The file beside it cannot be created or locked.
    """

    def __init__(self, name: str) -> None:
        self._file: int | None = None
        if name == MEMORY:
            return
        try:
            # links in a folder of somebody else lead to files that are none of its run
            if os.path.islink(name):
                raise OSError(errno.ELOOP, "it is a link: name the file itself")
            self._file = os.open(f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._file or 0, 200, 0).decode(errors="replace").strip()
            self.close()
            raise JournalBusy(
                f"journal '{name}' is written by {holder or 'another process'}: wait for its end, "
                "or give another `journal`"
            ) from error
        except OSError as error:
            self.close()
            raise JournalNotWritable(
                f"journal '{name}' cannot be written ({error.strerror}): give `journal` a file in "
                "a folder that can be written"
            ) from error
        with suppress(OSError):  # on a full disk the lock has no name
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"process {os.getpid()} on {gethostname()}\n".encode(), 0)

    def close(self) -> None:
        """Releases the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
