"""The tables of a journal, their versions, and migrations."""

from __future__ import annotations

import sqlite3

from broca.errors import JournalDamaged, JournalTooNew

APPLICATION = 0x62726F63
"""Application id of journals of broca ("broc")."""

_FIRST = """
CREATE TABLE components (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    names TEXT NOT NULL                 -- JSON list, in column order
);
CREATE TABLE conditions (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    weights TEXT NOT NULL,
    tokenizer TEXT NOT NULL,
    dtype TEXT NOT NULL,
    ablation TEXT NOT NULL,
    scale REAL NOT NULL,
    seed INTEGER NOT NULL,
    donors TEXT NOT NULL,
    response TEXT NOT NULL,
    gradients INTEGER NOT NULL
);
CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    task TEXT NOT NULL,
    number INTEGER NOT NULL,
    prompt TEXT NOT NULL,
    target TEXT NOT NULL
);
CREATE TABLE masks (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    components INTEGER NOT NULL REFERENCES components,
    ablated BLOB NOT NULL               -- one bit a component, in column order
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    settings TEXT NOT NULL,             -- JSON: what was asked
    search TEXT NOT NULL,               -- JSON: method, options and problem
    components INTEGER NOT NULL REFERENCES components,
    items BLOB NOT NULL,                -- the bank: little-endian int64 ids of items
    process TEXT NOT NULL,              -- who writes: process, machine, since when
    finished TEXT                       -- when, or NULL
);
CREATE TABLE plans (
    run INTEGER NOT NULL REFERENCES runs,
    number INTEGER NOT NULL,
    role TEXT NOT NULL,                 -- search or scores
    condition INTEGER NOT NULL REFERENCES conditions,
    masks BLOB NOT NULL,                -- of every row: little-endian int64 ids
    items BLOB NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE TABLE batches (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs,
    rows INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    role TEXT NOT NULL,
    written TEXT NOT NULL
);
CREATE TABLE rows (
    condition INTEGER NOT NULL REFERENCES conditions,
    mask INTEGER NOT NULL REFERENCES masks,
    item INTEGER NOT NULL REFERENCES items,
    response REAL NOT NULL,
    seal INTEGER NOT NULL,              -- CRC-32 of the four before
    batch INTEGER NOT NULL REFERENCES batches,
    PRIMARY KEY (condition, mask, item)
) WITHOUT ROWID;
CREATE TABLE gradients (
    condition INTEGER NOT NULL,
    mask INTEGER NOT NULL,
    item INTEGER NOT NULL,
    gradient BLOB NOT NULL,             -- one number a component, as `blobs.packed` makes it
    seal INTEGER NOT NULL,              -- CRC-32 of the four before
    PRIMARY KEY (condition, mask, item)
) WITHOUT ROWID;
CREATE TABLE outputs (
    condition INTEGER NOT NULL,
    mask INTEGER NOT NULL,
    item INTEGER NOT NULL,
    output TEXT NOT NULL,               -- JSON: the model's answers to the item's requests
    seal INTEGER NOT NULL,              -- CRC-32 of the four before
    PRIMARY KEY (condition, mask, item)
) WITHOUT ROWID;
"""

# batches of a forgotten run have no run, which version 1 does not allow; an output of version 1
# that has no row was asked for by a run that wrote a batch without rows; keys list columns in their
# order, since SQLite 3.40 takes a table without row ids for damaged where they do not
_SECOND = """
CREATE TABLE second_batches (
    id INTEGER PRIMARY KEY,
    run INTEGER REFERENCES runs,        -- NULL once the run is forgotten
    rows INTEGER NOT NULL,              -- rows or vectors that were written
    tokens INTEGER NOT NULL,
    role TEXT NOT NULL,
    written TEXT NOT NULL,
    pruned INTEGER NOT NULL DEFAULT 0   -- how many of them were dropped since
);
INSERT INTO second_batches SELECT *, 0 FROM batches;
DROP TABLE batches;
ALTER TABLE second_batches RENAME TO batches;
ALTER TABLE outputs ADD COLUMN batch INTEGER REFERENCES batches;
CREATE TABLE output_requests (
    condition INTEGER NOT NULL REFERENCES conditions,
    mask INTEGER NOT NULL REFERENCES masks,
    item INTEGER NOT NULL REFERENCES items,
    run INTEGER NOT NULL REFERENCES runs,
    role TEXT NOT NULL,
    PRIMARY KEY (condition, mask, item, run, role)
) WITHOUT ROWID;
INSERT OR IGNORE INTO output_requests
SELECT outputs.condition, outputs.mask, outputs.item, batches.run, batches.role
FROM outputs JOIN batches ON batches.rows = 0 AND EXISTS (
    SELECT 1 FROM plans WHERE plans.run = batches.run AND plans.condition = outputs.condition
) WHERE NOT EXISTS (
    SELECT 1 FROM rows WHERE rows.condition = outputs.condition AND rows.mask = outputs.mask
    AND rows.item = outputs.item
);
CREATE TABLE vectors (
    condition INTEGER NOT NULL REFERENCES conditions,
    digest BLOB NOT NULL,               -- of what is observed
    kind TEXT NOT NULL,                 -- of observation, for people
    length INTEGER NOT NULL,            -- numbers
    vector BLOB NOT NULL,               -- as `blobs.packed` makes it
    seal INTEGER NOT NULL,              -- CRC-32 of condition, digest, length and blob
    batch INTEGER NOT NULL REFERENCES batches,
    UNIQUE (condition, digest)
);
CREATE TABLE vector_requests (
    condition INTEGER NOT NULL REFERENCES conditions,
    digest BLOB NOT NULL,
    run INTEGER NOT NULL REFERENCES runs,
    PRIMARY KEY (condition, digest, run)
) WITHOUT ROWID;
"""

_SECOND_FOR_READERS = """
CREATE TEMP VIEW batches AS SELECT *, 0 AS pruned FROM main.batches;
CREATE TEMP VIEW outputs AS SELECT *, NULL AS batch FROM main.outputs;
CREATE TEMP TABLE output_requests (condition, mask, item, run, role);
CREATE TEMP TABLE vectors (condition, digest, kind, length, vector, seal, batch);
CREATE TEMP TABLE vector_requests (condition, digest, run);
"""

MIGRATIONS: tuple[str, ...] = (_FIRST, _SECOND)
"""The migrations from each version to the next; version 0 is an empty file."""

VERSION = len(MIGRATIONS)

_FOR_READERS = {1: _SECOND_FOR_READERS}
"""Tables that a reader adds in memory to a journal of an older version, by that version."""


def migrate(connection: sqlite3.Connection, *, name: str) -> None:
    """Migrates a journal to the current version, each step in its own transaction.

    Args:
        connection: Connection to the journal, in autocommit mode.
        name: Name of the journal in messages.

    Raises:
        JournalTooNew: A later version of broca wrote it.
        JournalDamaged: The file is another program's database.
    """
    for step in range(require_readable(connection, name=name), VERSION):
        connection.execute("BEGIN IMMEDIATE")
        try:
            _execute(connection, MIGRATIONS[step])
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {step + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def adapt(connection: sqlite3.Connection, version: int) -> None:
    """Presents a journal of an older version to a reader as one of the current version.

    Missing tables and columns are created in memory for this connection; the file is unchanged.
    """
    for step in range(version, VERSION):
        _execute(connection, _FOR_READERS.get(step, ""))


def _execute(connection: sqlite3.Connection, script: str) -> None:
    """Executes the statements of a script without ending the transaction."""
    for statement in script.split(";"):
        if statement.strip():
            connection.execute(statement)


def require_readable(connection: sqlite3.Connection, *, name: str) -> int:
    """Returns the version of a journal that this broca can read.

    Raises:
        JournalTooNew: A later version of broca wrote it.
        JournalDamaged: The file is another program's database.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION and (tables or version):
        raise JournalDamaged(f"'{name}' is a database, but no journal of broca: give another file")
    if version > VERSION:
        raise JournalTooNew(
            f"journal '{name}' has version {version}, this broca reads up to {VERSION}: use the "
            "broca that wrote it, or another `journal`"
        )
    return int(version)
