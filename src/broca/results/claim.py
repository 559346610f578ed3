"""A claim about a set, `claim.json`, and its replication, `replication.json`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from broca.errors import BadInput
from broca.options.base import Seed
from broca.results.base import AblationInfo, Interval, ModelInfo, Result, joined_names
from broca.results.pages.tables import Column, Table, percent, points
from broca.results.pages.template import filled
from broca.results.sufficiency import KeptSet
from broca.results.verification import Documents, Verdict

if TYPE_CHECKING:
    from broca.results.localization import Localization

CLAIMED = ("specific", "partly specific")
"""The verdicts that can be claimed, the strongest first."""


class Claim(Result, file="claim.json", verb="broca localize"):
    """What a localization claims, with everything that a replication needs.

    Attributes:
        model: The model.
        digests: Digests of the tokenizer, of the definition of the task and of its documents.
        task: The task that needs the set.
        wordings: Tasks that ask the same documents in other words; a replication tries them.
        heads: The set.
        components: Kinds of components, such as `heads`.
        ablation: How components were ablated.
        others: Tasks that lose little; those at chance, which can show no loss, are not claimed.
        same_skill: Tasks of the same capability.
        seed: Seed of the run.
        task_options: Task options that differ from the tasks' files.
        drop: The task's drop on the run's report items.
        off_target: Mean drop of the others.
        specific: Drop of the task beyond that of the others.
        verdict: The verdict of the run.
        documents: The documents that the run used, part by part.
        alone: What the set keeps while all others of its kinds are ablated, if it was measured.
    """

    kind: Literal["claim"] = "claim"
    model: ModelInfo
    digests: dict[str, str]
    task: str
    heads: tuple[str, ...]
    components: str
    ablation: AblationInfo
    others: tuple[str, ...]
    same_skill: tuple[str, ...]
    seed: Seed
    task_options: dict[str, Any]
    drop: Interval
    off_target: Interval
    specific: Interval
    verdict: Verdict
    documents: tuple[Documents, ...]
    wordings: tuple[str, ...] = ()
    alone: tuple[KeptSet, ...] = ()

    @classmethod
    def of(cls, run: Localization) -> Claim:
        """Returns the claim of a localization.

        Raises:
            BadInput: The verdict is neither `specific` nor `partly specific`.
        """
        found = run.verification
        if found.verdict is None or found.verdict.label not in CLAIMED:
            label = "without a verdict" if found.verdict is None else found.verdict.label
            raise BadInput(
                f"the set of {run.task} is {label}: only one that is specific, or partly so, can "
                "be claimed"
            )
        (lost,) = found.roles("task")
        others = tuple(line.task for line in found.roles("other"))
        assert lost.interval is not None
        assert found.off_target is not None
        assert found.specific is not None
        return cls(
            model=run.model, digests=run.digests, task=run.task, heads=found.heads,
            components=run.components, ablation=found.ablation, others=others,
            same_skill=run.same_skill, seed=run.search.seed, task_options=run.task_options,
            drop=lost.interval, off_target=found.off_target, specific=found.specific,
            verdict=found.verdict, documents=found.documents, wordings=run.wordings,
            alone=() if found.enough is None else found.enough.sets,
        )  # fmt: skip

    @property
    def selected(self) -> tuple[str, ...]:
        """The set."""
        return self.heads

    @property
    def statement(self) -> str:
        """What is claimed, in a sentence."""
        alone = ", ".join(f"{percent(line.kept)} under {line.ablation}" for line in self.alone)
        return (
            f"{self.model.short_name} without {joined_names(self.heads)} loses "
            f"{points(self.drop)} points of {self.task} and {points(self.off_target)} of "
            f"{len(self.others)} other tasks ({self.ablation.described}; {self.verdict.label})"
            f"{alone and f'; with all others ablated it keeps {alone}'}"
        )

    def pages(self, folder: Path) -> dict[str, str]:
        """Returns the report of the run that made the claim, which shows it."""
        return self.report_in(folder)

    def terminal(self) -> Iterator[str]:
        """Yields the statement."""
        yield f"{self.statement}."

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each member of the set."""
        return [{"component": head, "task": self.task} for head in self.heads]


Respect = Literal["fresh items", "other ablation", "other words"]
"""What is other than in the run."""


@dataclass(frozen=True)
class Replica:
    """A repetition of what was claimed, in one respect other than in the run.

    Attributes:
        respect: `fresh items`, `other ablation` or `other words`.
        task: The task; another one for other words.
        ablation: Kind of ablation.
        seed: Seed of items, random sets and resampling.
        items: Number of items of the task.
        drop: Drop of the task; None if the intact model cannot do it.
        specific: Drop of the task beyond that of the others.
        verdict: Verdict on fresh items; empty for the other respects.
        held: Whether the claim holds here; None if the intact model cannot do the task, or the
            rows do not suffice for a verdict.
        why: Why it does not hold, or cannot be told; empty otherwise.
    """

    respect: Respect
    task: str
    ablation: str
    seed: Seed
    items: int
    drop: Interval | None = None
    specific: Interval | None = None
    verdict: str = ""
    held: bool | None = None
    why: str = ""

    @property
    def place(self) -> str:
        """The respect, and what is other."""
        others = {"other ablation": self.ablation, "other words": self.task}
        return f"{self.respect}: {others.get(self.respect, f'seed {self.seed}')}"


class Replication(
    Result, file="replication.json", page="replication.html", verb="broca replicate",
    rows="replicas",
):  # fmt: skip
    """What a replication of a claim measured, and whether the claim held.

    Attributes:
        claim: The claim.
        model: The model.
        replicas: The repetitions.
        rows: Number of measured rows.
        notes: Notes for the reader.
    """

    kind: Literal["replication"] = "replication"
    claim: Claim
    model: ModelInfo
    replicas: tuple[Replica, ...]
    rows: int = 0
    notes: tuple[str, ...] = ()

    @property
    def task(self) -> str:
        """The task of the claim."""
        return self.claim.task

    @property
    def selected(self) -> tuple[str, ...]:
        """The set of the claim."""
        return self.claim.heads

    @property
    def answer(self) -> Literal["held", "held in part", "not held", "inconclusive"]:
        """Whether the claim held in all respects, on fresh items at least once, or not."""
        told = [replica for replica in self.replicas if replica.held is not None]
        fresh = [replica.held for replica in told if replica.respect == "fresh items"]
        if not any(fresh):
            return "not held" if fresh else "inconclusive"
        return "held" if all(replica.held for replica in told) else "held in part"

    @property
    def headline(self) -> str:
        """The answer, with the respects in which the claim did not hold."""
        failed = [replica.place for replica in self.replicas if replica.held is False]
        where = f" (not in {', '.join(failed)})" if failed and self.answer != "not held" else ""
        return f"{self.answer}{where}: {self.claim.statement}"

    @property
    def table(self) -> Table:
        """The repetitions."""
        return Table.of(
            "replicas", "The claim in other respects, in points", self.replicas,
            Column("in", "place"), Column("task"), Column("ablation"), Column("items"),
            Column("lost", "drop", points), Column("specific", show=points),
            Column("verdict", lambda line: line.verdict or None), Column("held"),
            Column("why", lambda line: line.why or None), strong=lambda line: line.held is False,
        )  # fmt: skip

    def terminal(self) -> Iterator[str | Table]:
        """Yields the answer and the repetitions."""
        yield f"{self.headline}."
        yield self.table
        yield from (f"note: {note}" for note in self.notes)
        yield f"{self.rows:,} rows"

    def page(self) -> str:
        """Renders the replication."""
        return filled("claim", replication=self, replicas=self.table)

    def pages(self, folder: Path) -> dict[str, str]:
        """Returns the own page, and the report of the run that made the claim."""
        return self.report_in(folder) | super().pages(folder)
