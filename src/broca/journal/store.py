"""Writes rows and finds them again: one transaction a batch, one digest a mask and an item."""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from broca.journal.files import MEMORY, WriterLock, connect, damaged, in_our_words, require_sound
from broca.journal.keys import Condition, ItemRecord, components_digest, mask_digests
from broca.journal.schema import migrate, require_readable

_AT_ONCE = 500
"""Parameters of one SELECT."""

_SEAL = struct.Struct("<qqqd")

Ids = NDArray[np.int64]


def seal(condition: int, mask: int, item: int, response: float) -> int:
    """CRC-32 of a row: a flipped bit in it does not pass in silence."""
    return zlib.crc32(_SEAL.pack(condition, mask, item, response))


def gradient_seal(condition: int, mask: int, item: int, gradient: bytes) -> int:
    """CRC-32 of a row's gradient, or of its output in UTF-8."""
    return zlib.crc32(gradient, zlib.crc32(_SEAL.pack(condition, mask, item, 0.0)))


class Journal:
    """An open journal.

    Rows are facts: they are added, never changed, and a row that is there already is an error.
    Masks, items and conditions are known by small ids within one journal.

    Args:
        path: The file; made if it does not exist. `:memory:` keeps everything in this process.
        read_only: Read beside a process that writes; nothing is made.

    Raises:
        BadInput: A journal to read does not exist.
        JournalBusy: Another process writes to it.
        JournalDamaged: It is cut short, altered, or no journal.
        JournalNotWritable: It cannot be made or written.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.name = str(path)
        """The file, as it was given."""
        self._open: sqlite3.Connection | None = None
        self._lock: WriterLock | None = None
        self._writes = False
        try:
            if not read_only:
                self._lock = WriterLock(self.name)
            if read_only or (self.name != MEMORY and Path(self.name).is_file()):
                # a file that is damaged or not ours is not even touched
                self._open = connect(self.name, write=False)
                with in_our_words(self.name):
                    require_sound(self._open, name=self.name, whole=False)
                    require_readable(self._open, name=self.name)
            if not read_only:
                self._disconnect()
                self._open = connect(self.name, write=True)
                self._writes = True
                with in_our_words(self.name):
                    migrate(self._open, name=self.name)
            with in_our_words(self.name):
                self._connection.execute(
                    "CREATE TEMP TABLE asked (position INTEGER PRIMARY KEY, mask, item)"
                )
        except BaseException:
            self.close()
            raise

    @property
    def _connection(self) -> sqlite3.Connection:
        assert self._open is not None, "the journal is closed"
        return self._open

    def _disconnect(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    @classmethod
    def in_memory(cls) -> Journal:
        """A journal for one process."""
        return cls(MEMORY)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file and lets others write.

        A journal that was written becomes a single plain file again, which can be copied and lie
        on a read-only disk; while a reader has it open it stays as it is.
        """
        if self._writes and self._open is not None:
            with suppress(sqlite3.Error):  # a disk that is full or gone: nothing is lost by it
                self._open.execute("PRAGMA busy_timeout = 0")
                self._open.execute("PRAGMA journal_mode = DELETE")
        self._disconnect()
        if self._lock is not None:
            self._lock.close()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Returns the rows of a SELECT.

        Raises:
            JournalError: The journal cannot be read.
        """
        with in_our_words(self.name):
            return self._connection.execute(sql, parameters).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing."""
        with in_our_words(self.name):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def condition(self, condition: Condition) -> int:
        """The id of a condition, which is added where it is new."""
        digest = condition.digest()
        values = asdict(condition)
        with self._transaction() as connection:
            connection.execute(
                f"INSERT OR IGNORE INTO conditions (digest, {', '.join(values)}) "
                f"VALUES (?{', ?' * len(values)})",
                (digest, *values.values()),
            )
        return int(self.query("SELECT id FROM conditions WHERE digest = ?", (digest,))[0][0])

    def components(self, names: Sequence[str]) -> int:
        """The id of a list of components, which is added where it is new."""
        digest = components_digest(names)
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO components (digest, names) VALUES (?, ?)",
                (digest, json.dumps(list(names))),
            )
        return int(self.query("SELECT id FROM components WHERE digest = ?", (digest,))[0][0])

    def items(self, items: Sequence[ItemRecord]) -> Ids:
        """The ids of items `(items,)`; new ones are added."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO items (digest, task, number, prompt, target) "
                "VALUES (?, ?, ?, ?, ?)",
                [(one.digest, one.task, one.number, one.prompt, one.target) for one in items],
            )
        return self._ids("items", [one.digest for one in items])

    def masks(self, masks: NDArray[np.bool_], components: int) -> Ids:
        """The ids of masks `(masks,)` over the components of an id; new ones are added."""
        names = json.loads(
            self.query("SELECT names FROM components WHERE id = ?", (components,))[0][0]
        )
        digests = mask_digests(masks, components_digest(names))
        packed = np.packbits(masks, axis=1)
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO masks (digest, components, ablated) VALUES (?, ?, ?)",
                [
                    (digest, components, bits.tobytes())
                    for digest, bits in zip(digests, packed, strict=True)
                ],
            )
        return self._ids("masks", digests)

    def find_masks(self, masks: NDArray[np.bool_], names: Sequence[str]) -> Ids:
        """The ids of masks `(masks,)` over named components; -1 for those that are not there."""
        digests = mask_digests(masks, components_digest(names))
        found = self._found("masks", digests)
        return np.array([found.get(digest, -1) for digest in digests], dtype=np.int64)

    def _ids(self, table: str, digests: Sequence[bytes]) -> Ids:
        found = self._found(table, digests)
        if len(found) != len(set(digests)):
            raise damaged(self.name, f"{table} that were just added are not there")
        return np.array([found[digest] for digest in digests], dtype=np.int64)

    def _found(self, table: str, digests: Sequence[bytes]) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        wanted = list(dict.fromkeys(digests))
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            found.update(
                self.query(
                    f"SELECT digest, id FROM {table} WHERE digest IN (?{', ?' * (len(some) - 1)})",
                    some,
                )
            )
        return found

    def known(
        self, condition: int, masks: Ids, items: Ids
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """What is known of rows.

        Args:
            condition: Id of the condition.
            masks: Id of every row's mask, `(rows,)`.
            items: Id of every row's item, `(rows,)`.

        Returns:
            Whether each row is there, and its response (0 where it is not), `(rows,)` each.

        Raises:
            JournalDamaged: A row is not what was written.
        """
        there = np.zeros(len(masks), dtype=bool)
        responses = np.zeros(len(masks))
        for position, mask, item, response, written in self._join(
            "rows", "response", condition, masks, items
        ):
            if seal(condition, mask, item, response) != written:
                raise damaged(self.name, f"the row of mask {mask} and item {item} was altered")
            there[position], responses[position] = True, response
        return there, responses

    def gradients(
        self, condition: int, masks: Ids, items: Ids, *, components: int
    ) -> NDArray[np.float32]:
        """The gradients of rows that are known, `(rows, components)`.

        Raises:
            JournalDamaged: A gradient is missing, or not what was written.
        """
        gradients = np.empty((len(masks), components), dtype="<f4")
        count = 0
        for position, mask, item, gradient, written in self._join(
            "gradients", "gradient", condition, masks, items
        ):
            if gradient_seal(condition, mask, item, gradient) != written:
                raise damaged(self.name, f"the gradient of mask {mask}, item {item} was altered")
            gradients[position] = np.frombuffer(gradient, dtype="<f4")
            count += 1
        if count != len(masks):
            raise damaged(self.name, f"{len(masks) - count} gradients are missing")
        return gradients.astype(np.float32, copy=False)

    def _join(self, table: str, value: str, condition: int, masks: Ids, items: Ids) -> list[Any]:
        """Position, mask, item, value and seal of the asked rows that a table holds."""
        with in_our_words(self.name):
            self._connection.execute("BEGIN")
            try:
                self._connection.execute("DELETE FROM temp.asked")
                self._connection.executemany(
                    "INSERT INTO temp.asked VALUES (?, ?, ?)",
                    zip(range(len(masks)), masks.tolist(), items.tolist(), strict=True),
                )
                return self._connection.execute(
                    f"SELECT asked.position, asked.mask, asked.item, kept.{value}, kept.seal "
                    f"FROM temp.asked CROSS JOIN {table} AS kept ON kept.condition = ? "
                    "AND kept.mask = asked.mask AND kept.item = asked.item",
                    (condition,),
                ).fetchall()
            finally:
                self._connection.execute("COMMIT")

    def write(
        self,
        *,
        run: int,
        role: str,
        condition: int,
        masks: Ids,
        items: Ids,
        responses: NDArray[np.float64],
        gradients: NDArray[np.float32] | None = None,
        outputs: Mapping[int, str] | None = None,
        tokens: int = 0,
    ) -> None:
        """Adds a batch of new rows, in one transaction.

        Args:
            run: Id of the run that measured them.
            role: What the run measured them for.
            condition: Id of their condition.
            masks: Id of every row's mask, `(rows,)`.
            items: Id of every row's item, `(rows,)`.
            responses: Their responses, finite, `(rows,)`.
            gradients: Their gradients, `(rows, components)`.
            outputs: What the model answered, for some positions among the rows.
            tokens: Tokens that the model read or wrote for them.

        Raises:
            JournalDamaged: A row is there already.
            JournalNotWritable: The disk is full.
        """
        pairs = list(zip(masks.tolist(), items.tolist(), strict=True))
        with self._transaction() as connection:
            batch = connection.execute(
                "INSERT INTO batches (run, rows, tokens, role, written) VALUES (?, ?, ?, ?, ?)",
                (run, len(pairs), tokens, role, now()),
            ).lastrowid
            connection.executemany(
                "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (condition, mask, item, value, seal(condition, mask, item, value), batch)
                    for (mask, item), value in zip(pairs, responses.tolist(), strict=True)
                ],
            )
            if gradients is not None:
                blobs = [row.tobytes() for row in gradients.astype("<f4", copy=False)]
                connection.executemany(
                    "INSERT INTO gradients VALUES (?, ?, ?, ?, ?)",
                    [
                        (condition, *pair, blob, gradient_seal(condition, *pair, blob))
                        for pair, blob in zip(pairs, blobs, strict=True)
                    ],
                )
            _add_outputs(
                connection, condition, {pairs[row]: text for row, text in (outputs or {}).items()}
            )

    def write_outputs(
        self,
        *,
        run: int,
        role: str,
        condition: int,
        masks: Ids,
        items: Ids,
        outputs: Sequence[str],
        tokens: int = 0,
    ) -> None:
        """Adds what the model answered in some rows, in one transaction.

        Args:
            run: Id of the run that asked.
            role: What it asked for.
            condition: Id of the rows' condition.
            masks: Id of every row's mask, `(rows,)`.
            items: Id of every row's item, `(rows,)`.
            outputs: The answers, one text a row.
            tokens: Tokens that they took.
        """
        pairs = zip(masks.tolist(), items.tolist(), strict=True)
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO batches (run, rows, tokens, role, written) VALUES (?, 0, ?, ?, ?)",
                (run, tokens, role, now()),
            )
            _add_outputs(connection, condition, dict(zip(pairs, outputs, strict=True)))

    def outputs(self, condition: int, masks: Ids, items: Ids) -> list[str | None]:
        """What the model answered in rows, as it was written; None where that was not kept.

        Raises:
            JournalDamaged: An output is not what was written.
        """
        found: list[str | None] = [None] * len(masks)
        for position, mask, item, text, written in self._join(
            "outputs", "output", condition, masks, items
        ):
            if gradient_seal(condition, mask, item, text.encode()) != written:
                raise damaged(self.name, f"the output of mask {mask}, item {item} was altered")
            found[position] = text
        return found

    def begin_run(
        self,
        digest: bytes,
        *,
        settings: Mapping[str, Any],
        components: int,
        items: Ids,
        process: str,
    ) -> int:
        """The id of a run; one of the same digest goes on, and its list of plans begins anew."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO runs (digest, settings, search, components, items, process) "
                "VALUES (?, ?, '{}', ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET "
                "process = excluded.process, finished = NULL",
                (
                    digest,
                    json.dumps(settings),
                    components,
                    items.astype("<i8").tobytes(),
                    process,
                ),
            )
            (run,) = connection.execute(
                "SELECT id FROM runs WHERE digest = ?", (digest,)
            ).fetchone()
            connection.execute("DELETE FROM plans WHERE run = ?", (run,))
        return int(run)

    def add_plan(
        self, run: int, number: int, *, role: str, condition: int, masks: Ids, items: Ids
    ) -> None:
        """Notes which rows a run asked for."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO plans VALUES (?, ?, ?, ?, ?, ?)",
                (
                    run,
                    number,
                    role,
                    condition,
                    masks.astype("<i8").tobytes(),
                    items.astype("<i8").tobytes(),
                ),
            )

    def note_search(self, run: int, search: Mapping[str, Any]) -> None:
        """Notes the search of a run: method, options and problem."""
        with self._transaction() as connection:
            connection.execute("UPDATE runs SET search = ? WHERE id = ?", (json.dumps(search), run))

    def finish_run(self, run: int) -> None:
        """Notes that a run came to its end."""
        with self._transaction() as connection:
            connection.execute("UPDATE runs SET finished = ? WHERE id = ?", (now(), run))

    def cost(self, run: int) -> tuple[int, int]:
        """Rows that a run measured in all its processes, and the tokens they took."""
        (row,) = self.query(
            "SELECT coalesce(sum(rows), 0), coalesce(sum(tokens), 0) FROM batches WHERE run = ?",
            (run,),
        )
        return int(row[0]), int(row[1])


def _add_outputs(
    connection: sqlite3.Connection, condition: int, outputs: Mapping[tuple[int, int], str]
) -> None:
    connection.executemany(
        "INSERT INTO outputs VALUES (?, ?, ?, ?, ?)",
        [
            (condition, *pair, text, gradient_seal(condition, *pair, text.encode()))
            for pair, text in outputs.items()
        ],
    )


def now() -> str:
    """The time, for people: nothing is ordered or decided by it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
