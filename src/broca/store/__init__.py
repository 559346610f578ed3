"""The store: an SQLite file, the journal, of all measured rows and vectors."""

from broca.store.files import WriterLock
from broca.store.journal import Journal, now
from broca.store.records import (
    Condition,
    ItemRecord,
    components_digest,
    row_keys,
    vector_keys,
)
from broca.store.runs import (
    Replay,
    RunRows,
    export_rows,
    find_run,
    read_bank,
    read_condition,
    read_gradients,
    read_items,
    read_plans,
    read_run,
    read_runs,
    table_of_rows,
)

__all__ = [
    "Condition",
    "ItemRecord",
    "Journal",
    "Replay",
    "RunRows",
    "WriterLock",
    "components_digest",
    "export_rows",
    "find_run",
    "now",
    "read_bank",
    "read_condition",
    "read_gradients",
    "read_items",
    "read_plans",
    "read_run",
    "read_runs",
    "row_keys",
    "table_of_rows",
    "vector_keys",
]
