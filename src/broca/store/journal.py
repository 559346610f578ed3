"""The journal: an SQLite file to which batches of rows and vectors are added, and never changed."""

import json
import os
import sqlite3
import zlib
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from broca.errors import JournalDamaged, JournalNotWritable, JournalVersion
from broca.known_paths import place_of
from broca.store.files import MEMORY, WriterLock, connect, damaged, in_our_words
from broca.store.records import Condition, Ids, ItemRecord

APPLICATION = 0x62726F63
"""Application id of journals of broca ("broc")."""

VERSION = 3
"""Version of the tables."""

JOURNAL = "journal.sqlite"
"""Name of the journal in the folder of a run."""

_COLUMNS = {
    "conditions": ("text",),
    "components": ("names",),  # JSON, in column order
    "items": ItemRecord._fields,
    "masks": ("components", "ablated"),  # one bit a component
    # settings and search are JSON; items are the ids of the bank, in the order of its positions
    "runs": ("digest", "settings", "components", "items", "process", "search", "finished"),
    "plans": ("run", "role", "condition", "keys"),
    # keys are int64, responses (of rows alone) float64, all little-endian
    "batches": (
        "run", "role", "kind", "condition", "rows", "tokens", "written", "keys", "responses",
    ),
    "contents": ("content",),  # of the batch of the same id: a text or a vector for each key
}  # fmt: skip
"""Columns of every table between `id` and `seal`, the CRC-32 of the line."""

_LINES = {table: namedtuple(table, ("id", *columns)) for table, columns in _COLUMNS.items()}

_SCHEMA = [
    f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {', '.join(columns)}, seal)"
    for table, columns in _COLUMNS.items()
]

ENTRY = np.dtype([("key", "<i8"), ("batch", "<i8"), ("place", "<i8"), ("response", "<f8")])
"""Where a row or a vector stands: its batch (0 if the journal lacks it) and its place there."""

_LEVEL = 1
"""Compression level of zlib. Dense vectors shrink by 3 to 7 per cent at every level. Those with 90
per cent zeros shrink to 16 per cent at level 1, and to 14 at level 6, which takes three times as
long (`python benchmarks/journal.py`)."""


class Journal(AbstractContextManager["Journal"]):
    """An open journal.

    Conditions, lists of components, items and masks have small ids within a journal. A row is
    found by its condition and by the ids of its mask and its item, a vector by its condition and by
    a digest; an index of those in use is kept in memory. Every line that is read has to fit its
    checksum.

    Args:
        path: The file, which is created if it does not exist, or to only read, the folder of a run;
            by default rows are kept in memory.
        read_only: Whether to only read, possibly while another process writes.

    Raises:
        BadInput: A journal to read does not exist.
        JournalBusy: Another process writes to it.
        JournalDamaged: The file is truncated, altered, or not a journal.
        JournalNotWritable: The file cannot be created or written.
        JournalVersion: Another version of broca wrote it.
    """

    def __init__(self, path: str | Path = MEMORY, *, read_only: bool = False) -> None:
        folder = place_of(path) if read_only else None
        self.name = str(folder / JOURNAL if folder is not None and folder.is_dir() else path)
        """The file."""
        self._read_only = read_only
        self._open: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._forget()
        self._lock = None if read_only else WriterLock(self.name)
        try:
            if read_only or Path(self.name).is_file():  # a damaged or foreign file is not touched
                self._open = connect(self.name, write=False)
                self._require_sound()
            if not read_only:
                if self._open is not None:
                    self._open.close()
                self._open = connect(self.name, write=True)
                self._file = _file_of(self.name)
                if not self.query("SELECT 1 FROM sqlite_master"):
                    with self.transaction() as connection:
                        for statement in _SCHEMA:
                            connection.execute(statement)
                        connection.execute(f"PRAGMA application_id = {APPLICATION}")
                        connection.execute(f"PRAGMA user_version = {VERSION}")
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file and releases its lock.

        A journal that was written becomes a single file again, which can be copied and read from a
        read-only disk, unless a reader has it open.
        """
        if self._open is not None:
            if not self._read_only:
                with suppress(sqlite3.Error):  # a full or missing disk: no row is lost
                    self._open.execute("PRAGMA busy_timeout = 0")
                    self._open.execute("PRAGMA journal_mode = DELETE")
            self._open.close()
            self._open = None
        if self._lock is not None:
            self._lock.close()

    def _forget(self) -> None:
        """Drops what is kept in memory of the file's contents."""
        self._numbered: dict[str, dict[Any, int]] = {}
        # by kind and condition: sorted arrays, each at most half as long as the one before
        self._entries: dict[tuple[str, int], list[NDArray[np.void]]] = {}

    def _require_sound(self) -> None:
        """Lets SQLite check its pages, and compares the tables with those of this version."""
        ((verdict,),) = self.query("PRAGMA quick_check(1)")
        if verdict != "ok":
            raise damaged(self.name, str(verdict).splitlines()[-1])
        ((application,),) = self.query("PRAGMA application_id")
        ((version,),) = self.query("PRAGMA user_version")
        schema = [statement for (statement,) in self.query("SELECT sql FROM sqlite_master")]
        if not schema and not self._read_only:
            return  # a writer was killed before its first transaction
        if application != APPLICATION:
            raise JournalDamaged(
                f"'{self.name}' is a database, but no journal of broca: give another file"
            )
        if version != VERSION:
            raise JournalVersion(
                f"journal '{self.name}' has version {version}, this broca reads {VERSION}: use the "
                "broca that wrote it, or another `journal`"
            )
        if schema != _SCHEMA:
            raise damaged(self.name, "its tables were altered")

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Returns the lines of a SELECT, whose checksums are not compared.

        Raises:
            JournalError: The journal cannot be read.
        """
        assert self._open is not None, "the journal is closed"
        with in_our_words(self.name):
            return self._open.execute(sql, parameters).fetchall()

    def lines(self, table: str, where: str = "1", *parameters: Any) -> Iterator[Any]:
        """Yields the lines of a table as named tuples, in the order of their ids.

        Raises:
            JournalDamaged: A line is not what was written.
        """
        for *values, seal in self.query(
            f"SELECT * FROM {table} WHERE {where} ORDER BY id", parameters
        ):
            if _seal(table, values) != seal:
                raise damaged(self.name, f"line {values[0]} of {table} was altered")
            yield _LINES[table](*values)

    def line(self, table: str, number: int) -> Any:
        """Returns the line of an id as a named tuple.

        Raises:
            JournalDamaged: It was altered, or is missing.
        """
        for line in self.lines(table, "id = ?", number):
            return line
        raise damaged(self.name, f"line {number} of {table} is missing")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction, which is written completely or not at all; an inner one joins the outer.

        Raises:
            JournalNotWritable: The journal is open for reading only, or the disk is full.
        """
        assert self._open is not None, "the journal is closed"
        if self._read_only:
            raise JournalNotWritable(
                f"journal '{self.name}' is open for reading only: open it without `read_only`"
            )
        if self._open.in_transaction:
            yield self._open
            return
        if self._file != _file_of(self.name):
            raise JournalNotWritable(
                f"journal '{self.name}' was removed or replaced while it was being written: what "
                "was measured is lost; give the same command again"
            )
        with in_our_words(self.name):
            self._open.execute("BEGIN IMMEDIATE")
            try:
                yield self._open
                self._open.execute("COMMIT")
            except BaseException:
                self._forget()
                with suppress(sqlite3.Error):  # a full disk ends the transaction itself
                    self._open.execute("ROLLBACK")
                raise

    def _add(self, table: str, lines: Sequence[Sequence[Any]], *, first: int = 0) -> int:
        """Adds lines to a table, or replaces that of the id `first`; returns the first id."""
        marks = ", ".join("?" * (len(_COLUMNS[table]) + 2))
        with self.transaction() as connection:
            if not first:  # within it: a writer that the lock did not see may add lines too
                ((first,),) = self.query(f"SELECT coalesce(max(id), 0) + 1 FROM {table}")
            numbered = [(number, *line) for number, line in enumerate(lines, first)]
            connection.executemany(
                f"INSERT OR REPLACE INTO {table} VALUES ({marks})",
                [(*line, _seal(table, line)) for line in numbered],
            )
        return first

    def _ids(self, table: str, lines: Sequence[tuple[Any, ...]]) -> Ids:
        """Returns the ids of lines of a table of distinct lines; new ones are added."""
        if table not in self._numbered:
            self._numbered[table] = {_told(table, line): line.id for line in self.lines(table)}
        known = self._numbered[table]
        told = [_told(table, (0, *line)) for line in lines]
        new = {key: line for key, line in zip(told, lines, strict=True) if key not in known}
        if new:
            first = self._add(table, list(new.values()))
            known.update(zip(new, range(first, first + len(new)), strict=True))
        return np.array([known[key] for key in told], dtype=np.int64)

    def condition(self, condition: Condition) -> int:
        """Returns the id of a condition, which is added if it is new."""
        return int(self._ids("conditions", [(condition.text(),)])[0])

    def components(self, names: Sequence[str]) -> int:
        """Returns the id of a list of components, which is added if it is new."""
        return int(self._ids("components", [(json.dumps(list(names)),)])[0])

    def items(self, items: Sequence[ItemRecord]) -> Ids:
        """Returns the ids of items `(items,)`; new items are added."""
        return self._ids("items", items)

    def masks(self, masks: NDArray[np.bool_], components: int) -> Ids:
        """Returns the ids of masks `(masks,)` over the components of an id; new masks are added."""
        packed = np.packbits(masks, axis=1)
        return self._ids("masks", [(components, bits.tobytes()) for bits in packed])

    def names(self, components: int) -> tuple[str, ...]:
        """Returns the names of the components of an id."""
        return tuple(json.loads(self.line("components", components).names))

    def ablated(self, masks: Ids, components: int) -> NDArray[np.bool_]:
        """Returns the masks of some ids over the components of an id, `(masks, components)`."""
        ids, index = np.unique(masks, return_inverse=True)
        wanted = "id IN (SELECT value FROM json_each(?))", json.dumps(ids.tolist())
        lines = [line.ablated for line in self.lines("masks", *wanted)]
        if len(lines) < len(ids):
            raise damaged(self.name, "a line of masks is missing")
        count = len(self.names(components))
        packed = np.frombuffer(b"".join(lines), dtype=np.uint8).reshape(len(ids), (count + 7) // 8)
        return np.unpackbits(packed, axis=1, count=count).astype(bool)[index]

    def bank(self, run: int) -> list[int]:
        """Returns the ids of the items of a run, in the order of the positions in its plans."""
        return list(map(int, np.frombuffer(self.line("runs", run).items, dtype="<i8")))

    def find(self, kind: str, condition: int, keys: Ids) -> NDArray[np.void]:
        """Looks rows, outputs or vectors up.

        Args:
            kind: `rows`, `outputs` or `vectors`.
            condition: Id of their condition.
            keys: Their keys; see `row_keys` and `vector_keys`.

        Returns:
            Entries of the type `ENTRY`; the batch of a row that the journal lacks is 0.

        Raises:
            JournalDamaged: A batch is not what was written.
        """
        if (kind, condition) not in self._entries:
            batches = self.lines("batches", "kind = ? AND condition = ?", kind, condition)
            parts = [
                _entries(batch.id, batch.keys, batch.responses) for batch in batches if batch.rows
            ]
            self._entries[kind, condition] = [_sorted(parts)] if parts else []
        found = np.zeros(len(keys), dtype=ENTRY)
        for entries in self._entries[kind, condition]:
            places = np.searchsorted(entries["key"], keys).clip(max=len(entries) - 1)
            known = entries["key"][places] == keys
            found[known] = entries[places[known]]
        return found

    def contents(self, entries: NDArray[np.void]) -> list[bytes | None]:
        """Returns the text in UTF-8, or the vector, of every entry of `find`; None if it has none.

        Raises:
            JournalDamaged: A batch is not what was written.
        """
        contents: list[bytes | None] = [None] * len(entries)
        order = np.argsort(entries["batch"], kind="stable")
        batches, starts = np.unique(entries["batch"][order], return_index=True)
        for batch, rows in zip(batches.tolist(), np.split(order, starts[1:]), strict=False):
            if batch:  # 0 are entries that the journal lacks
                content = zlib.decompress(self.line("contents", batch).content)
                values = msgspec.msgpack.decode(content, type=list[bytes])
                for row in rows.tolist():
                    contents[row] = values[entries["place"][row]]
        return contents

    def write(
        self,
        *,
        run: int,
        role: str,
        condition: int,
        keys: Ids,
        kind: str = "rows",
        responses: NDArray[np.float64] | None = None,
        contents: Sequence[bytes | memoryview] = (),
        tokens: int = 0,
    ) -> None:
        """Adds a batch of new rows, outputs or vectors in one transaction.

        Args:
            run: Id of the run that measured them.
            role: What the run measured them for; the kind of vectors, for the reader.
            condition: Id of their condition.
            keys: Their keys, `(rows,)`.
            kind: `rows`, `outputs` or `vectors`.
            responses: The responses of rows, finite, `(rows,)`.
            contents: Gradients of the rows, outputs, or vectors, in the order of `keys`.
            tokens: Tokens that the model read or wrote for them.

        Raises:
            JournalNotWritable: The disk is full.
        """
        key_bytes = keys.astype("<i8").tobytes()
        response_bytes = None if responses is None else responses.astype("<f8").tobytes()
        known = self._entries.pop((kind, condition), None)  # read again if this is interrupted
        with self.transaction():
            line = (run, role, kind, condition, len(keys), tokens, now(), key_bytes, response_bytes)
            batch = self._add("batches", [line])
            if contents:
                content = zlib.compress(msgspec.msgpack.encode(contents), _LEVEL)
                self._add("contents", [(content,)], first=batch)
        if known is not None and len(keys):
            known.append(_sorted([_entries(batch, key_bytes, response_bytes)]))
            while len(known) > 1 and len(known[-2]) < 2 * len(known[-1]):
                known[-2:] = [_sorted(known[-2:])]
            self._entries[kind, condition] = known

    def begin_run(
        self, digest: bytes, *, settings: dict[str, Any], components: int, items: Ids, process: str
    ) -> int:
        """Returns the id of a run; a run with the same digest is resumed without its plans."""
        bank = items.astype("<i8").tobytes()
        line = (digest, json.dumps(settings), components, bank, process, "{}", None)
        with self.transaction() as connection:
            for run in self.lines("runs", "digest = ?", digest):
                connection.execute("DELETE FROM plans WHERE run = ?", (run.id,))
                self._change_run(run.id, process=process, finished=None)
                return int(run.id)
            return self._add("runs", [line])

    def note_search(self, run: int, search: Mapping[str, Any]) -> None:
        """Records the search of a run: method, options and problem."""
        self._change_run(run, search=json.dumps(search))

    def finish_run(self, run: int) -> None:
        """Records that a run has finished."""
        self._change_run(run, finished=now())

    def _change_run(self, run: int, **changes: Any) -> None:
        self._add("runs", [self.line("runs", run)._replace(**changes)[1:]], first=run)

    def add_plan(self, run: int, *, role: str, condition: int, keys: Ids) -> None:
        """Records the rows that a run requests, `(rows,)`."""
        self._add("plans", [(run, role, condition, keys.astype("<i8").tobytes())])

    def cost(self, run: int) -> tuple[int, int]:
        """Returns how many rows a run measured in all its processes, and its tokens.

        Outputs and vectors are not rows; their tokens count.
        """
        batches = list(self.lines("batches", "run = ?", run))
        rows = sum(batch.rows for batch in batches if batch.kind == "rows")
        return rows, sum(batch.tokens for batch in batches)


def _told(table: str, line: Sequence[Any]) -> Any:
    """Returns what tells a line of a table from the others: of an item, its digest."""
    return line[1] if table == "items" else tuple(line[1:])


def _file_of(name: str) -> tuple[int, int] | None:
    """Returns what identifies the file at a path; None if there is none."""
    with suppress(OSError):
        stat = os.stat(name)
        return stat.st_dev, stat.st_ino
    return None


def _seal(table: str, line: Sequence[Any]) -> int:
    """Returns the CRC-32 of a line, which starts with its id."""
    return zlib.crc32(msgspec.msgpack.encode((table, *line)))


def _entries(batch: int, keys: bytes, responses: bytes | None) -> NDArray[np.void]:
    entries = np.zeros(len(keys) // 8, dtype=ENTRY)
    entries["key"], entries["batch"] = np.frombuffer(keys, dtype="<i8"), batch
    entries["place"] = np.arange(len(entries))
    if responses is not None:
        entries["response"] = np.frombuffer(responses, dtype="<f8")
    return entries


def _sorted(parts: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    entries = np.concatenate(parts)
    return entries[np.argsort(entries["key"], kind="stable")]


def now() -> str:
    """Returns the time, for the reader only."""
    return datetime.now(UTC).isoformat(timespec="seconds")
