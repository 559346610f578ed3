"""What a journal holds, as `broca journal` prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from broca.results.base import Result


@dataclass(frozen=True, kw_only=True)
class JournalCondition:
    """Rows that were measured alike.

    Attributes:
        weights: Digest of the model: its weights, its settings and its adapters.
        dtype: Number format of the weights.
        ablation: Kind of ablation.
        scale: Gate of an ablated component.
        response: What a row holds, such as the score of an item.
        rows: Number of rows.
    """

    weights: str
    dtype: str
    ablation: str
    scale: float
    response: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class JournalRun:
    """A run of a journal, in numbers.

    Attributes:
        id: Number in the journal.
        digest: Digest of its settings, hexadecimal.
        settings: Settings of the command.
        search: Method, options and problem of its search.
        process: The process that wrote it.
        finished: Time of its end; None if it is unfinished.
        rows: Number of rows and vectors that it measured.
        tokens: Number of their tokens.
        components: Number of components.
        items: Number of items.
    """

    id: int
    digest: str
    settings: dict[str, Any]
    search: dict[str, Any]
    process: str
    finished: str | None
    rows: int
    tokens: int
    components: int
    items: int

    @property
    def subject(self) -> str:
        """What the run measured: its task or tasks, or the heads of a stress test."""
        names = [self.settings.get(name) for name in ("task", "measures", "tasks", "heads")]
        subject = next((name for name in names if name), "no task")
        return subject if isinstance(subject, str) else "+".join(subject)

    @property
    def procedure(self) -> str:
        """The search method of a localization, or the verb."""
        return str(self.settings.get("method") or self.settings.get("verb", "verify"))


@dataclass(frozen=True, kw_only=True, repr=False)
class JournalContents(Result, file="journal.json", verb="broca journal"):
    """The contents of a journal.

    Attributes:
        counts: Number of lines of each table, such as `rows` and `masks`.
        vectors: Number of vectors of each kind.
        conditions: Rows by what they were measured with.
        runs: The runs, the oldest first.
    """

    kind: Literal["journal"] = "journal"
    counts: dict[str, int]
    vectors: dict[str, int]
    conditions: tuple[JournalCondition, ...]
    runs: tuple[JournalRun, ...]

    def summary(self) -> tuple[str, ...]:
        """Returns the number of lines of each table, and the number of runs."""
        return (
            ", ".join(f"{count:,} {name}" for name, count in self.counts.items()),
            f"{len(self.runs):,} runs, "
            f"{sum(run.finished is not None for run in self.runs):,} of them finished",
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each run: what it did, its seed, rows, tokens and end."""
        return [
            {
                "run": run.id,
                "task": run.subject,
                "method": run.procedure,
                "seed": run.settings.get("seed"),
                "rows": run.rows,
                "tokens": run.tokens,
                "finished": run.finished,
            }
            for run in self.runs
        ]
