"""`inspect_journal`: what a journal holds, without a change to it."""

from __future__ import annotations

from pathlib import Path

from broca.journal import Journal, read_runs
from broca.results.runs import JournalCondition, JournalContents, JournalRun

TABLES = ("rows", "masks", "items", "gradients", "outputs", "vectors")
"""Tables whose lines are counted."""

_CONDITIONS = (
    "SELECT weights, dtype, ablation, scale, conditions.response, count(*) FROM rows "
    "JOIN conditions ON conditions.id = rows.condition GROUP BY conditions.id"
)


def inspect_journal(file: str | Path) -> JournalContents:
    """Counts what a journal holds, and lists its runs.

    `broca.journal` reads single rows, and checks and prunes a journal.

    Args:
        file: A journal, such as `broca-out/journal.sqlite`. It is not changed.

    Raises:
        BrocaError: The file does not exist, is no journal, or is damaged.
    """
    with Journal(file, read_only=True) as journal:
        counts = {table: journal.query(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}
        vectors = dict(journal.query("SELECT kind, count(*) FROM vectors GROUP BY kind"))
        conditions = journal.query(_CONDITIONS)
        runs = read_runs(journal)
    return JournalContents(
        counts=counts,
        vectors=vectors,
        conditions=tuple(
            JournalCondition(
                weights=weights, dtype=dtype, ablation=ablation, scale=scale, response=response,
                rows=rows,
            )
            for weights, dtype, ablation, scale, response, rows in conditions
        ),
        runs=tuple(
            JournalRun(**{
                **vars(run), "components": len(run.components), "items": len(run.items)
            })
            for run in runs
        ),
    )  # fmt: skip
