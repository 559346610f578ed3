"""`inspect_journal`: what a journal holds, without a change to it."""

from collections import Counter
from pathlib import Path

from broca.results.runs import JournalCondition, JournalContents
from broca.store import Journal, read_condition, read_runs


def inspect_journal(file: str | Path) -> JournalContents:
    """Counts what a journal holds, and lists its runs; `broca.store` reads single rows.

    Args:
        file: A journal, or the folder of a run. It is not changed.

    Raises:
        BrocaError: The file does not exist, is no journal, or is damaged.
    """
    with Journal(file, read_only=True) as journal:
        # in the order in which they are shown
        counts = Counter(rows=0, masks=0, items=0, gradients=0, outputs=0, vectors=0)
        counts.update({table: len(list(journal.lines(table))) for table in ("masks", "items")})
        rows: Counter[int] = Counter()
        vectors: Counter[str] = Counter()
        for batch in journal.lines("batches"):
            counts[batch.kind] += batch.rows
            if batch.kind == "rows":
                rows[batch.condition] += batch.rows
            if batch.kind == "vectors":
                vectors[batch.role] += batch.rows
        conditions = {number: read_condition(journal, number) for number in sorted(rows)}
        counts["gradients"] = sum(rows[n] for n, with_ in conditions.items() if with_.gradients)
        runs = read_runs(journal)
    return JournalContents(
        counts=dict(counts),
        vectors=dict(vectors),
        conditions=tuple(
            JournalCondition(
                weights=condition.weights, dtype=condition.dtype, ablation=condition.ablation,
                scale=condition.scale, response=condition.response, rows=rows[number],
            )
            for number, condition in conditions.items()
        ),
        runs=tuple(runs),
    )  # fmt: skip
