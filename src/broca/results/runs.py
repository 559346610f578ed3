"""Runs: their records, their journals, the cost of methods, repetitions and reproductions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from broca.results.base import SCHEMA, ModelInfo, Result
from broca.results.pages.tables import Column, Table, fixed


@dataclass(kw_only=True)
class RunFolderRecord:
    """The request of a run, which lets the same command resume it.

    Attributes:
        schema: Version of this layout.
        verb: The verb.
        command: The command line.
        options: The options of the verb, group by group.
        journal: The journal, relative to the folder.
        versions: Versions of the packages that a result depends on.
        machine: The properties of the machine that may affect results.
        digests: Digests of weights, tokenizer, tasks and items; empty until the run has begun.
    """

    schema: int = SCHEMA
    verb: str
    command: str
    options: dict[str, Any]
    journal: str
    versions: dict[str, str]
    machine: dict[str, Any]
    digests: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Repetition:
    """The comparison of a repeated run with the first run.

    Attributes:
        grade: `identical`, `equal within the tolerance` or `different`.
        details: The differences, one line each.
    """

    grade: str
    details: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the run was reproduced."""
        return self.grade in ("identical", "equal within the tolerance")


@dataclass(frozen=True)
class MethodCost:
    """The estimated cost of a method.

    Attributes:
        method: Name of the method.
        rows: Maximum number of rows of its search.
        tokens: Number of tokens of these rows, without sharing of work.
        seconds: Time at the speed of the timed rows; shared prefixes and layers make it shorter.
        response: Response of most of its rows.
        problem: Why it cannot run with these settings; empty otherwise.
    """

    method: str
    rows: int
    tokens: int
    seconds: float
    response: str
    problem: str = ""


class CostEstimate(Result, file="plan.json", verb="broca plan", rows="methods"):
    """The estimated cost of all methods.

    Attributes:
        model: The model.
        task: The task.
        items: Number of `locate` items of the task.
        components: Number of components.
        timed_rows: Number of timed rows, over all responses.
        tokens_per_second: Speed in each response.
        memory_bytes: Peak memory of the device, or of the process on a CPU.
        methods: The cost of every method.
    """

    kind: Literal["cost estimate"] = "cost estimate"
    model: ModelInfo
    task: str
    items: int
    components: int
    timed_rows: int
    tokens_per_second: dict[str, float]
    memory_bytes: int
    methods: tuple[MethodCost, ...]

    def terminal(self) -> Iterator[str | Table]:
        """Yields the rows and the time of every method, or why it cannot run."""

        def known(name: str) -> Callable[[MethodCost], Any]:
            return lambda method: None if method.problem else getattr(method, name)

        possible = sum(not method.problem for method in self.methods)
        yield (
            f"{possible} of {len(self.methods)} methods can search for {self.task} in "
            f"{self.model.name}: {self.components} components, {self.items} items"
        )
        yield Table.of(
            "methods", f"A search for {self.task}, without its verification", self.methods,
            Column("method"), Column("response", lambda method: method.problem or method.response),
            Column("rows", known("rows")), Column("tokens", known("tokens")),
            Column("minutes", known("seconds"), fixed(1, scale=1 / 60)),
        )  # fmt: skip
        yield (
            f"from {self.timed_rows} timed rows; rows that share work take less; the verification "
            "measures at most as many rows, and 3,000 after a shorter search; memory held so far: "
            f"{self.memory_bytes / 2**30:.1f} GiB"
        )


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
        rows: Number of rows that it measured.
        tokens: Number of tokens of its rows, outputs and vectors.
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

    def terminal(self) -> Iterator[str]:
        """Yields the number of lines of each table, then conditions, vectors and runs."""
        yield ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        for condition in self.conditions:
            yield (
                f"weights {condition.weights[:12]} ({condition.dtype}), {condition.ablation} "
                f"ablation to {condition.scale:g}, {condition.response}: {condition.rows:,} rows"
            )
        yield from (f"{kind}: {count:,} vectors" for kind, count in self.vectors.items())
        for run in self.runs:
            state = f"finished {run.finished}" if run.finished else "not finished"
            seed = f", seed {run.settings['seed']}" if "seed" in run.settings else ""
            yield (
                f"run {run.id}: {run.subject} by {run.procedure}{seed}: {run.rows:,} rows "
                f"measured, {run.tokens:,} tokens, {state}"
            )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each run: what it did, its seed, rows, tokens and end."""
        return [
            {
                "run": run.id, "task": run.subject, "method": run.procedure,
                "seed": run.settings.get("seed"),
                "rows": run.rows, "tokens": run.tokens, "finished": run.finished,
            }
            for run in self.runs
        ]  # fmt: skip


class Reproduction(Result, verb="broca reproduce", kw_only=False):
    """A repeated table or figure.

    Attributes:
        name: Name of the table or figure, such as `table2`.
        models: The models, in the order given.
        rows: The rows, each with its model: plain values by column.
        settings: The settings, as plain values.
        notes: Notes for the reader, such as tasks that a model cannot do.
        shows: What the table or figure shows.
    """

    kind: Literal["reproduction"] = field(default="reproduction", kw_only=True)
    name: str
    models: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()
    shows: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all rows, in the order of their first appearance."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row))

    @property
    def file_name(self) -> str:
        """Name of its file, that of the table or figure."""
        return f"{self.name}.json"

    def terminal(self) -> tuple[str, ...]:
        """Returns the content of the table and its size."""
        return (f"{self.name}: {self.shows}", f"{len(self.rows)} rows of {', '.join(self.models)}")

    def records(self) -> list[dict[str, Any]]:
        """Returns its rows; a row without a value in a column has None there."""
        return [{column: row.get(column) for column in self.columns} for row in self.rows]
