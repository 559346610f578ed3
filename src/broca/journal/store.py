"""Writes and reads rows: a transaction for each batch, digests for masks and items."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from broca.errors import JournalNotWritable
from broca.journal.blobs import blob_seal, packed, row_seal, unpacked, vector_seal
from broca.journal.files import MEMORY, WriterLock, connect, damaged, in_our_words, require_sound
from broca.journal.keys import Condition, ItemRecord, components_digest, mask_digests
from broca.journal.schema import adapt, migrate, require_readable

_AT_ONCE = 500
"""Maximum number of parameters of a SELECT."""

REQUESTS = ("plans", "output_requests", "vector_requests")
"""Tables of the requests of runs."""

_OBSERVED = "observations"
"""Role of the batches of vectors."""

Ids = NDArray[np.int64]


class Journal:
    """An open journal.

    Rows are added and never changed; adding an existing row is an error. Masks, items and
    conditions have small ids within a journal. A file of an older version is migrated when it is
    opened for writing; a reader does not change it.

    Args:
        path: The file, which is created if it does not exist. `:memory:` keeps all rows in this
            process.
        read_only: Whether to only read, possibly while another process writes.

    Raises:
        BadInput: A journal to read does not exist.
        JournalBusy: Another process writes to it.
        JournalDamaged: The file is truncated, altered, or not a journal.
        JournalNotWritable: The file cannot be created or written.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.name = str(path)
        """The file as the caller named it."""
        self._open: sqlite3.Connection | None = None
        self._lock: WriterLock | None = None
        self._writes = False
        try:
            if not read_only:
                self._lock = WriterLock(self.name)
            if read_only or (self.name != MEMORY and Path(self.name).is_file()):
                # a damaged or foreign file is not touched
                self._open = connect(self.name, write=False)
                with in_our_words(self.name):
                    require_sound(self._open, name=self.name, indexes=False)
                    version = require_readable(self._open, name=self.name)
                    if read_only:
                        adapt(self._open, version)
            if not read_only:
                self._disconnect()
                self._open = connect(self.name, write=True)
                self._writes = True
                with in_our_words(self.name):
                    migrate(self._open, name=self.name)
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
        """Returns a journal in memory."""
        return cls(MEMORY)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file and releases its lock.

        A journal that was written becomes a single file again, which can be copied and read from a
        read-only disk, unless a reader has it open.
        """
        if self._writes and self._open is not None:
            with suppress(sqlite3.Error):  # a full or missing disk: no row is lost
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
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction, which is written completely or not at all.

        Raises:
            JournalNotWritable: The journal is open for reading only.
        """
        if not self._writes:
            raise JournalNotWritable(
                f"journal '{self.name}' is open for reading only: open it without `read_only`"
            )
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
        """Returns the id of a condition, which is added if it is new."""
        digest = condition.digest()
        values = asdict(condition)
        with self.transaction() as connection:
            connection.execute(
                f"INSERT OR IGNORE INTO conditions (digest, {', '.join(values)}) "
                f"VALUES (?{', ?' * len(values)})",
                (digest, *values.values()),
            )
        return int(self.query("SELECT id FROM conditions WHERE digest = ?", (digest,))[0][0])

    def components(self, names: Sequence[str]) -> int:
        """Returns the id of a list of components, which is added if it is new."""
        digest = components_digest(names)
        with self.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO components (digest, names) VALUES (?, ?)",
                (digest, json.dumps(list(names))),
            )
        return int(self.query("SELECT id FROM components WHERE digest = ?", (digest,))[0][0])

    def items(self, items: Sequence[ItemRecord]) -> Ids:
        """Returns the ids of items `(items,)`; new items are added."""
        with self.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO items (digest, task, number, prompt, target) "
                "VALUES (?, ?, ?, ?, ?)",
                [(item.digest, item.task, item.number, item.prompt, item.target) for item in items],
            )
        return self._ids("items", [item.digest for item in items])

    def masks(self, masks: NDArray[np.bool_], components: int) -> Ids:
        """Returns the ids of masks `(masks,)` over the components of an id; new masks are added."""
        names = json.loads(
            self.query("SELECT names FROM components WHERE id = ?", (components,))[0][0]
        )
        digests = mask_digests(masks, components_digest(names))
        packed = np.packbits(masks, axis=1)
        with self.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO masks (digest, components, ablated) VALUES (?, ?, ?)",
                [
                    (digest, components, bits.tobytes())
                    for digest, bits in zip(digests, packed, strict=True)
                ],
            )
        return self._ids("masks", digests)

    def find_masks(self, masks: NDArray[np.bool_], names: Sequence[str]) -> Ids:
        """Returns the ids of masks `(masks,)` over named components; -1 for missing masks."""
        digests = mask_digests(masks, components_digest(names))
        ids = self._ids_by_digest("masks", digests)
        return np.array([ids.get(digest, -1) for digest in digests], dtype=np.int64)

    def _ids(self, table: str, digests: Sequence[bytes]) -> Ids:
        ids = self._ids_by_digest(table, digests)
        if len(ids) != len(set(digests)):
            raise damaged(self.name, f"{table} that were just added are not there")
        return np.array([ids[digest] for digest in digests], dtype=np.int64)

    def _ids_by_digest(self, table: str, digests: Sequence[bytes]) -> dict[bytes, int]:
        return dict(self._by_digest(f"SELECT digest, id FROM {table} WHERE", digests))

    def _by_digest(self, select: str, digests: Sequence[bytes]) -> Iterator[Any]:
        """Runs a SELECT for some digests, which complete its condition."""
        distinct = list(dict.fromkeys(digests))
        for start in range(0, len(distinct), _AT_ONCE):
            part = distinct[start : start + _AT_ONCE]
            yield from self.query(f"{select} digest IN (?{', ?' * (len(part) - 1)})", part)

    def known(
        self, condition: int, masks: Ids, items: Ids
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Looks rows up.

        Args:
            condition: Id of the condition.
            masks: Id of every row's mask, `(rows,)`.
            items: Id of every row's item, `(rows,)`.

        Returns:
            Whether each row exists, and its response (0 if it does not), `(rows,)` each.

        Raises:
            JournalDamaged: A row is not what was written.
        """
        known = np.zeros(len(masks), dtype=bool)
        responses = np.zeros(len(masks))
        for position, mask, item, response, seal in self._stored(
            "rows", "response", condition, masks, items
        ):
            if row_seal(condition, mask, item, response) != seal:
                raise damaged(self.name, f"the row of mask {mask} and item {item} was altered")
            known[position], responses[position] = True, response
        return known, responses

    def gradients(
        self, condition: int, masks: Ids, items: Ids, *, components: int
    ) -> NDArray[np.float32]:
        """Returns the gradients of known rows, `(rows, components)`.

        Raises:
            JournalDamaged: A gradient is missing or was altered.
        """
        gradients = np.empty((len(masks), components), dtype=np.float32)
        count = 0
        for position, mask, item, blob, seal in self._stored(
            "gradients", "gradient", condition, masks, items
        ):
            if blob_seal(condition, mask, item, blob) != seal:
                raise damaged(self.name, f"the gradient of mask {mask}, item {item} was altered")
            gradients[position] = self._unpacked(blob, components)
            count += 1
        if count != len(masks):
            raise damaged(self.name, f"{len(masks) - count} gradients are missing")
        return gradients

    def outputs(self, condition: int, masks: Ids, items: Ids) -> list[str | None]:
        """Returns the model's answers in rows as text; None if they were not kept.

        Raises:
            JournalDamaged: An output was altered.
        """
        outputs: list[str | None] = [None] * len(masks)
        for position, mask, item, text, seal in self._stored(
            "outputs", "output", condition, masks, items
        ):
            if blob_seal(condition, mask, item, text.encode()) != seal:
                raise damaged(self.name, f"the output of mask {mask}, item {item} was altered")
            outputs[position] = text
        return outputs

    def _stored(self, table: str, value: str, condition: int, masks: Ids, items: Ids) -> list[Any]:
        """Returns position, mask, item, value and checksum of the rows that a table contains."""
        return self.query(
            f"SELECT wanted.key, stored.mask, stored.item, stored.{value}, stored.seal "
            f"FROM json_each(?) AS wanted CROSS JOIN {table} AS stored ON stored.condition = ? "
            "AND stored.mask = wanted.value >> 32 AND stored.item = wanted.value & 4294967295",
            (json.dumps(((masks << 32) | items).tolist()), condition),
        )

    def vectors(self, condition: int, digests: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        """Returns the vectors of observations.

        Args:
            condition: Id of the condition.
            digests: Digests of the observations, 16 bytes each.

        Returns:
            The vector of every observation; None if it was never written.

        Raises:
            JournalDamaged: A vector was altered.
        """
        vectors = {}
        for digest, length, blob, seal in self._by_digest(
            "SELECT digest, length, vector, seal FROM vectors "
            f"WHERE condition = {int(condition)} AND",
            digests,
        ):
            if vector_seal(condition, digest, length, blob) != seal:
                raise damaged(self.name, f"the vector of observation {digest.hex()} was altered")
            vectors[digest] = self._unpacked(blob, length)
        return [vectors.get(digest) for digest in digests]

    def _unpacked(self, blob: bytes, length: int) -> NDArray[np.float32]:
        try:
            return unpacked(blob, length)
        except ValueError as error:
            raise damaged(self.name, f"a vector of {length} numbers holds {error}") from error

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
        """Adds a batch of new rows in one transaction.

        Args:
            run: Id of the run that measured them.
            role: What the run measured them for.
            condition: Id of their condition.
            masks: Id of every row's mask, `(rows,)`.
            items: Id of every row's item, `(rows,)`.
            responses: Their responses, finite, `(rows,)`.
            gradients: Their gradients, `(rows, components)`.
            outputs: Answers of the model, by position among the rows.
            tokens: Tokens that the model read or wrote for them.

        Raises:
            JournalDamaged: A row already exists.
            JournalNotWritable: The disk is full.
        """
        pairs = list(zip(masks.tolist(), items.tolist(), strict=True))
        with self.transaction() as connection:
            batch = _add_batch(connection, run, role, rows=len(pairs), tokens=tokens)
            connection.executemany(
                "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (condition, mask, item, value, row_seal(condition, mask, item, value), batch)
                    for (mask, item), value in zip(pairs, responses.tolist(), strict=True)
                ],
            )
            if gradients is not None:
                blobs = [packed(row) for row in gradients]
                connection.executemany(
                    "INSERT INTO gradients VALUES (?, ?, ?, ?, ?)",
                    [
                        (condition, *pair, blob, blob_seal(condition, *pair, blob))
                        for pair, blob in zip(pairs, blobs, strict=True)
                    ],
                )
            texts = {pairs[row]: text for row, text in (outputs or {}).items()}
            _add_outputs(connection, condition, texts, batch)

    def write_outputs(
        self,
        *,
        run: int,
        role: str,
        condition: int,
        outputs: Sequence[str],
        masks: Ids,
        items: Ids,
        tokens: int = 0,
    ) -> None:
        """Adds the model's answers in some rows in one transaction.

        Args:
            run: Id of the run that requested them.
            role: What it asked for.
            condition: Id of the rows' condition.
            outputs: The answers, a text for each row.
            masks: Id of every row's mask, `(rows,)`.
            items: Id of every row's item, `(rows,)`.
            tokens: Number of their tokens.
        """
        pairs = list(zip(masks.tolist(), items.tolist(), strict=True))
        with self.transaction() as connection:
            batch = _add_batch(connection, run, role, rows=0, tokens=tokens)
            _add_outputs(connection, condition, dict(zip(pairs, outputs, strict=True)), batch)
            _request_outputs(connection, run, role, condition, pairs)

    def write_vectors(
        self,
        *,
        run: int,
        kind: str,
        condition: int,
        digests: Sequence[bytes],
        vectors: Sequence[NDArray[np.float32]],
        tokens: int = 0,
    ) -> None:
        """Adds the vectors of new observations in one transaction.

        Args:
            run: Id of the run that measured them.
            kind: Kind of the observations, for the reader.
            condition: Id of their condition.
            digests: Digests of the observations, 16 bytes each.
            vectors: The vectors, `(length,)` each; lengths may differ.
            tokens: Tokens that the model read or wrote for them.

        Raises:
            JournalDamaged: A vector already exists.
            JournalNotWritable: The disk is full.
        """
        with self.transaction() as connection:
            batch = _add_batch(connection, run, _OBSERVED, rows=len(digests), tokens=tokens)
            for digest, vector in zip(digests, vectors, strict=True):
                blob, length = packed(vector), vector.size
                seal = vector_seal(condition, digest, length, blob)
                connection.execute(
                    "INSERT INTO vectors VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (condition, digest, kind, length, blob, seal, batch),
                )
            _request_vectors(connection, run, condition, digests)

    def begin_run(
        self,
        digest: bytes,
        *,
        settings: Mapping[str, Any],
        components: int,
        items: Ids,
        process: str,
    ) -> int:
        """Returns the id of a run; a run with the same digest is resumed without its requests."""
        with self.transaction() as connection:
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
            for table in REQUESTS:
                connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
        return int(run)

    def add_plan(
        self, run: int, number: int, *, role: str, condition: int, masks: Ids, items: Ids
    ) -> None:
        """Records the rows that a run requested."""
        with self.transaction() as connection:
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

    def note_outputs(self, run: int, *, role: str, condition: int, masks: Ids, items: Ids) -> None:
        """Records the rows whose outputs a run requested, in addition to earlier ones."""
        with self.transaction() as connection:
            pairs = zip(masks.tolist(), items.tolist(), strict=True)
            _request_outputs(connection, run, role, condition, pairs)

    def note_vectors(self, run: int, *, condition: int, digests: Sequence[bytes]) -> None:
        """Records the observations that a run requested, in addition to earlier ones."""
        with self.transaction() as connection:
            _request_vectors(connection, run, condition, digests)

    def note_search(self, run: int, search: Mapping[str, Any]) -> None:
        """Records the search of a run: method, options and problem."""
        with self.transaction() as connection:
            connection.execute("UPDATE runs SET search = ? WHERE id = ?", (json.dumps(search), run))

    def finish_run(self, run: int) -> None:
        """Records that a run has finished."""
        with self.transaction() as connection:
            connection.execute("UPDATE runs SET finished = ? WHERE id = ?", (now(), run))

    def cost(self, run: int) -> tuple[int, int]:
        """Returns how many rows a run measured in all its processes, and its tokens.

        Vectors are not rows; their tokens count.
        """
        (row,) = self.query(
            "SELECT coalesce(sum(CASE role WHEN ? THEN 0 ELSE rows END), 0), "
            "coalesce(sum(tokens), 0) FROM batches WHERE run = ?",
            (_OBSERVED, run),
        )
        return int(row[0]), int(row[1])

    def rows_requested(self, run: int, role: str) -> int:
        """Returns the number of distinct rows that a run requested, measured or known.

        A row with its gradient counts as three, and a row whose output was requested counts once
        more. Vectors are not rows.

        Args:
            run: Id of the run.
            role: What the run requested them for.
        """
        plans: dict[tuple[int, int], list[tuple[bytes, bytes]]] = {}
        for condition, gradients, masks, items in self.query(
            "SELECT condition, gradients, masks, items FROM plans "
            "JOIN conditions ON conditions.id = condition WHERE run = ? AND role = ?",
            (run, role),
        ):
            plans.setdefault((condition, gradients), []).append((masks, items))
        ((count,),) = self.query(
            "SELECT count(*) FROM output_requests WHERE run = ? AND role = ?", (run, role)
        )
        for (_, gradients), blobs in plans.items():
            masks, items = (b"".join(column) for column in zip(*blobs, strict=True))
            rows = np.frombuffer(masks, dtype="<i8") << 32 | np.frombuffer(items, dtype="<i8")
            count += len(np.unique(rows)) * (3 if gradients else 1)
        return int(count)


def _add_batch(
    connection: sqlite3.Connection, run: int, role: str, *, rows: int, tokens: int
) -> int | None:
    return connection.execute(
        "INSERT INTO batches (run, rows, tokens, role, written) VALUES (?, ?, ?, ?, ?)",
        (run, rows, tokens, role, now()),
    ).lastrowid


def _add_outputs(
    connection: sqlite3.Connection,
    condition: int,
    outputs: Mapping[tuple[int, int], str],
    batch: int | None,
) -> None:
    connection.executemany(
        "INSERT INTO outputs VALUES (?, ?, ?, ?, ?, ?)",
        [
            (condition, *pair, text, blob_seal(condition, *pair, text.encode()), batch)
            for pair, text in outputs.items()
        ],
    )


def _request_outputs(
    connection: sqlite3.Connection,
    run: int,
    role: str,
    condition: int,
    pairs: Iterable[tuple[int, int]],
) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO output_requests VALUES (?, ?, ?, ?, ?)",
        [(condition, *pair, run, role) for pair in pairs],
    )


def _request_vectors(
    connection: sqlite3.Connection, run: int, condition: int, digests: Iterable[bytes]
) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO vector_requests VALUES (?, ?, ?)",
        [(condition, digest, run) for digest in digests],
    )


def now() -> str:
    """Returns the time, for the reader only."""
    return datetime.now(UTC).isoformat(timespec="seconds")
