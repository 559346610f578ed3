"""The journal: an SQLite file of all measured rows and vectors."""

from broca.journal.keys import Condition, ItemRecord, components_digest, mask_digests
from broca.journal.pruning import Pruned, prune
from broca.journal.reading import RunRecord, RunRows, read_run, read_runs
from broca.journal.replay import Replay
from broca.journal.store import Journal

__all__ = [
    "Condition",
    "ItemRecord",
    "Journal",
    "Pruned",
    "Replay",
    "RunRecord",
    "RunRows",
    "components_digest",
    "mask_digests",
    "prune",
    "read_run",
    "read_runs",
]
