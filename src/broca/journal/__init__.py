"""The journal: SQLite, one row for each measured (mask, item); what is in it is never lost."""

from broca.journal.keys import Condition, ItemRecord, components_digest, mask_digests
from broca.journal.reading import RunRecord, RunRows, read_run, read_runs
from broca.journal.replay import Replay
from broca.journal.store import Journal

__all__ = [
    "Condition",
    "ItemRecord",
    "Journal",
    "Replay",
    "RunRecord",
    "RunRows",
    "components_digest",
    "mask_digests",
    "read_run",
    "read_runs",
]
