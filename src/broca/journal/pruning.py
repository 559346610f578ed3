"""Deletes rows from a journal that none of its runs requested."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from broca.errors import BadInput
from broca.journal.files import in_our_words
from broca.journal.store import REQUESTS, Journal

_UNFINISHED = (
    "(SELECT batches.id FROM batches JOIN runs ON runs.id = batches.run WHERE finished IS NULL)"
)
"""Batches of unfinished runs, whose lists of requests may be incomplete."""


def _absent(table: str, other_table: str, *columns: str) -> str:
    """Returns the SQL condition that a line's columns occur in no line of another table."""
    # looks the key up; NOT IN over several columns would scan the whole table for NULL
    equal = " AND ".join(f"other.{column} = {table}.{column}" for column in columns)
    return f"NOT EXISTS (SELECT 1 FROM {other_table} AS other WHERE {equal})"


_ROW = ("condition", "mask", "item")

_UNNEEDED = {
    "rows": f"{_absent('rows', 'temp.requested', *_ROW)} AND batch NOT IN {_UNFINISHED}",
    "vectors": f"{_absent('vectors', 'vector_requests', 'condition', 'digest')} "
    f"AND batch NOT IN {_UNFINISHED}",
    "gradients": _absent("gradients", "rows", *_ROW),
    # outputs of version 1 have no batch
    "outputs": f"{_absent('outputs', 'rows', *_ROW)} "
    f"AND {_absent('outputs', 'output_requests', *_ROW)} AND CASE WHEN batch IS NULL THEN "
    "NOT EXISTS (SELECT 1 FROM runs WHERE finished IS NULL) "
    f"ELSE batch NOT IN {_UNFINISHED} END",
    "masks": "id NOT IN (SELECT mask FROM rows UNION SELECT mask FROM outputs "
    "UNION SELECT mask FROM output_requests UNION SELECT mask FROM temp.requested)",
    "items": "id NOT IN (SELECT item FROM rows UNION SELECT item FROM outputs "
    "UNION SELECT item FROM output_requests UNION SELECT item FROM temp.requested "
    "UNION SELECT item FROM temp.banks)",
    "conditions": "id NOT IN (SELECT condition FROM rows UNION SELECT condition FROM outputs "
    "UNION SELECT condition FROM vectors UNION SELECT condition FROM plans "
    "UNION SELECT condition FROM output_requests UNION SELECT condition FROM vector_requests)",
    "components": "id NOT IN (SELECT components FROM masks UNION SELECT components FROM runs)",
    "batches": "run IS NULL AND id NOT IN (SELECT batch FROM rows UNION SELECT batch FROM vectors "
    "UNION SELECT batch FROM outputs WHERE batch IS NOT NULL)",
}
"""Lines that no run needs, table by table, in the order of deletion."""


@dataclass(frozen=True)
class Pruned:
    """The numbers of deleted lines of a journal.

    Attributes:
        rows: Number of rows, with their gradients.
        vectors: Number of vectors of observations.
        outputs: Number of raw outputs.
        bytes: Decrease of the file's size.
    """

    rows: int
    vectors: int
    outputs: int
    bytes: int


def prune(journal: Journal, *, forget: Sequence[int] = ()) -> Pruned:
    """Deletes rows, vectors and outputs that no run requested, with their masks and items.

    All rows that an unfinished run measured are kept. The recorded cost of runs is unchanged.

    Args:
        journal: The journal, open for writing.
        forget: Numbers of runs to delete first; rows that other runs requested too are kept.

    Raises:
        BadInput: The journal contains no such run.
        JournalNotWritable: The journal is open for reading only, or the disk is full.
    """
    before = _bytes(journal)
    dropped = {}
    with journal.transaction() as connection:
        _forget(journal, connection, forget)
        _collect_requests(connection)
        for table, unneeded in _UNNEEDED.items():
            if table in ("rows", "vectors"):
                counts = connection.execute(
                    f"SELECT count(*), batch FROM {table} WHERE {unneeded} GROUP BY batch"
                ).fetchall()
                connection.executemany(
                    "UPDATE batches SET pruned = pruned + ? WHERE id = ?", counts
                )
            dropped[table] = connection.execute(f"DELETE FROM {table} WHERE {unneeded}").rowcount
        connection.execute("DROP TABLE temp.requested")
        connection.execute("DROP TABLE temp.banks")
    with in_our_words(journal.name):
        connection.execute("VACUUM")
    freed = before - _bytes(journal)
    return Pruned(dropped["rows"], dropped["vectors"], dropped["outputs"], freed)


def _forget(journal: Journal, connection: sqlite3.Connection, runs: Sequence[int]) -> None:
    numbers = [number for (number,) in connection.execute("SELECT id FROM runs ORDER BY id")]
    for run in runs:
        if run not in numbers:
            raise BadInput(
                f"`forget` names run {run}, and journal '{journal.name}' holds "
                f"{', '.join(map(str, numbers)) or 'no runs'}: choose one of these"
            )
        for table in REQUESTS:
            connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
        connection.execute("UPDATE batches SET run = NULL WHERE run = ?", (run,))
        connection.execute("DELETE FROM runs WHERE id = ?", (run,))


def _collect_requests(connection: sqlite3.Connection) -> None:
    """Lists the rows of all plans and the items of all banks in temporary tables."""
    connection.execute(
        "CREATE TEMP TABLE requested (condition INTEGER, mask INTEGER, item INTEGER, "
        "PRIMARY KEY (condition, mask, item)) WITHOUT ROWID"
    )
    for condition, masks, items in connection.execute("SELECT condition, masks, items FROM plans"):
        pairs = zip(_numbers(masks), _numbers(items), strict=True)
        connection.executemany(
            "INSERT OR IGNORE INTO temp.requested VALUES (?, ?, ?)",
            ((condition, *pair) for pair in pairs),
        )
    connection.execute("CREATE TEMP TABLE banks (item INTEGER PRIMARY KEY)")
    for (items,) in connection.execute("SELECT items FROM runs"):
        connection.executemany(
            "INSERT OR IGNORE INTO temp.banks VALUES (?)", ((item,) for item in _numbers(items))
        )


def _numbers(blob: bytes) -> list[int]:
    numbers: list[int] = np.frombuffer(blob, dtype="<i8").tolist()
    return numbers


def _bytes(journal: Journal) -> int:
    ((pages,),) = journal.query("PRAGMA page_count")
    ((size,),) = journal.query("PRAGMA page_size")
    return int(pages) * int(size)
