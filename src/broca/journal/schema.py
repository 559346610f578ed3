"""The tables of a journal, their versions, and how an old journal becomes a new one."""

from __future__ import annotations

import sqlite3

from broca.errors import JournalDamaged, JournalTooNew

APPLICATION = 0x62726F63
"""Marks the file as a journal of broca ("broc")."""

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
    gradient BLOB NOT NULL,             -- little-endian float32, one a component
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

MIGRATIONS: tuple[str, ...] = (_FIRST,)
"""What leads from each version to the next; version 0 is an empty file."""

VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, *, name: str) -> None:
    """Brings a journal to the present version, each step in a transaction of its own.

    Args:
        connection: To the journal, in autocommit mode.
        name: What to call it in messages.

    Raises:
        JournalTooNew: A later version of broca wrote it.
        JournalDamaged: It is another program's database.
    """
    for step in range(require_readable(connection, name=name), VERSION):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in MIGRATIONS[step].split(";"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {step + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def require_readable(connection: sqlite3.Connection, *, name: str) -> int:
    """Returns the version of a journal that this broca can read.

    Raises:
        JournalTooNew: A later version of broca wrote it.
        JournalDamaged: It is another program's database.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION and (tables or version):
        raise JournalDamaged(f"'{name}' is a database, but no journal of broca: give another file")
    if version > VERSION:
        raise JournalTooNew(
            f"journal '{name}' has version {version}, this broca reads up to {VERSION}: use the "
            "broca that wrote it, or another --journal"
        )
    return int(version)
