"""What a verification found: `verification.json`, and `verification` in `result.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from broca.results.base import AblationInfo, Interval, ModelInfo, Result, listed

Role = Literal["task", "same_skill", "other"]
"""What a task is to a claim: the one claimed, another of the same capability, or a control."""

Label = Literal[
    "specific",
    "partly specific",
    "universal",
    "not localized at head level",
    "breaks the model",
    "inconclusive",
]
"""The verdicts; docs/verification.md has the rule."""


@dataclass(frozen=True)
class TaskDrop:
    """What one task lost on its report items; its scores stand in `baseline` and `after`.

    Attributes:
        task: The task.
        role: What it is to the claim.
        metric: Its main metric.
        items: Report items, the same before and after.
        drop: What its score lost; positive is worse.
        ci: 95 % paired bootstrap interval of that; None where no statistics were requested, as for
            all that follow.
        test: `mcnemar` for right/wrong metrics, `permutation` for continuous ones.
        p: Two-sided p-value of no change.
        p_holm: The same, Holm-corrected over the tasks that are not the claimed one; for the
            claimed task equal to `p`.
        chance: Score of guessing; None where less is better, or an older file does not say.
        below_chance: The part of the drop that lies below chance: an inverted preference, where
            the rest of the drop is lost skill.
    """

    task: str
    role: Role
    metric: str
    items: int
    drop: float
    ci: tuple[float, float] | None = None
    test: str | None = None
    p: float | None = None
    p_holm: float | None = None
    chance: float | None = None
    below_chance: float = 0.0

    @property
    def interval(self) -> Interval | None:
        """The drop with its interval; None without statistics."""
        return _interval(self.drop, self.ci)


@dataclass(frozen=True)
class Documents:
    """Documents of one task in one part of the items, so that others can score the same.

    Attributes:
        task: The task, or the group.
        part: `locate`, `confirm` or `report`.
        member: The task of lm-eval, which differs from `task` in a group.
        split: Split of its data set; empty where the task does not say.
        ids: lm-eval's `doc_id` of each document: its place in that split.
    """

    task: str
    part: str
    member: str
    split: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class ControlSet:
    """One random set.

    Attributes:
        heads: Its members.
        drop: What the task loses without it.
        specific_drop: That minus the mean drop of the others; None without others.
    """

    heads: tuple[str, ...]
    drop: float
    specific_drop: float | None


@dataclass(frozen=True)
class Standing:
    """Where the real set stands among random ones.

    Attributes:
        value: The real set's figure on the items of the controls.
        rank: 1 + the number of random sets that reach or exceed it.
        p: `rank` / (random sets + 1).
        effect: Its distance from the random sets' mean in their standard deviations; None where
            they do not differ among themselves.
    """

    value: float
    rank: int
    p: float
    effect: float | None


@dataclass(frozen=True)
class Controls:
    """Random sets of the same size as the real one.

    Attributes:
        kind: `layers`: as many from each layer; `norm`: heads of nearly the same output norm.
        items: Items of the task that each was measured on.
        other_items: Items of all other tasks together.
        drop: Standing in the task's drop.
        specific: Standing in the task's drop minus the others' mean; None without others.
        sets: The random sets.
    """

    kind: str
    items: int
    other_items: int
    drop: Standing
    specific: Standing | None
    sets: tuple[ControlSet, ...]


@dataclass(frozen=True)
class Sample:
    """One item's output before and after something is ablated.

    Attributes:
        task: The task.
        prompt: What the model was given.
        target: The right answer.
        before: What the model wrote before; of a verification's own samples intact.
        after: What it wrote afterwards; of these with the set ablated.
    """

    task: str
    prompt: str
    target: str
    before: str
    after: str


@dataclass(frozen=True)
class Member:
    """What one member contributes to the task's drop.

    Attributes:
        head: Its name.
        alone: Drop when it alone is ablated.
        restored: What of the set's drop goes away when it is the only one left intact.
        p: The smaller p-value of the two, doubled, Holm-corrected over the members.
        needed: Whether either is positive at the level of the verification.
        changes: Some outputs whose score it changes, those that lose most first.
        beside: What the other components are in these: `intact`, or, where it changes no score
            alone, the rest of the set `ablated`.
        elsewhere: Drop of every other task when it alone is ablated.
    """

    head: str
    alone: Interval
    restored: Interval
    p: float
    needed: bool
    changes: tuple[Sample, ...] = ()
    beside: Literal["intact", "ablated"] = "intact"
    elsewhere: dict[str, Interval] = field(default_factory=dict)

    @property
    def says(self) -> str:
        """What it contributes, in words: a member that costs nothing alone may add to the set."""
        alone, added = (100 * one.value for one in (self.alone, self.restored))
        if self.alone.low > 0:
            return f"costs {alone:.1f} points alone"
        if self.restored.low > 0:
            return f"shows no cost alone, adds {added:.1f} points to what the others cost"
        return "shows no cost alone, and adds none that shows"


@dataclass(frozen=True)
class CurvePoint:
    """Drops with the first k components ablated.

    Attributes:
        k: How many.
        head: The last of them; None for k = 0.
        drop: What the task loses.
        same_skill: Mean drop of the tasks of its skill; None without any.
        others: Mean drop of the others; None without any.
    """

    k: int
    head: str | None
    drop: Interval
    same_skill: Interval | None
    others: Interval | None


@dataclass(frozen=True)
class Curve:
    """Drops with more and more components ablated.

    Attributes:
        points: From none to the first ten.
        flat_at: The k from which no further component significantly costs more.
    """

    points: tuple[CurvePoint, ...]
    flat_at: int


@dataclass(frozen=True)
class AblationCheck:
    """The claim under one kind of ablation.

    Attributes:
        kind: What stands in for ablated outputs.
        drop: What the task loses.
        specific: That minus the mean drop of the others; None without others.
        p: P-value of no change.
        survives: Whether both intervals lie above zero.
    """

    kind: str
    drop: Interval
    specific: Interval | None
    p: float
    survives: bool


@dataclass(frozen=True)
class TaskFailures:
    """Degenerate outputs of one task.

    Attributes:
        task: The task.
        items: Items looked at.
        before: Share of outputs with each failure mode, intact.
        after: The same with the set ablated.
        excess: Share of items that are degenerate with the set ablated and not intact.
        most_common: The most common output with the set ablated.
        explained: Share of the task's score above chance that is lost on these items, gains on
            them subtracted; None where an older file does not say.
    """

    task: str
    items: int
    before: dict[str, float]
    after: dict[str, float]
    excess: float
    most_common: str
    explained: float | None = None

    @property
    def damage(self) -> float:
        """Share of outputs that count as broken: degenerate, as far as score is lost with them."""
        return self.excess if self.explained is None else min(self.excess, self.explained)


@dataclass(frozen=True)
class Crossing:
    """Components found on one task of a capability, measured on another.

    Attributes:
        found_on: The task that they were found on.
        measured_on: The task that they were ablated on.
        heads: Their names.
        drop: What that task loses.
        p: P-value of no change.
    """

    found_on: str
    measured_on: str
    heads: tuple[str, ...]
    drop: Interval
    p: float


@dataclass(frozen=True)
class Verdict:
    """The verdict.

    Attributes:
        label: In one or a few words.
        text: In one sentence, with the numbers it rests on.
        items_needed: For `inconclusive`: report items that would do; else None.
        headline: What is true, in a short sentence without intervals; empty where an older file
            does not say.
    """

    label: Label
    text: str
    items_needed: int | None = None
    headline: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Verification(Result, file="verification.json", page="verification.html", verb="broca verify"):
    """What a set of components costs on held-out items, and what that allows to say.

    Without statistics there are `drops` without intervals and p-values, and no verdict.

    Attributes:
        model: The model.
        task: The claimed task.
        heads: The set.
        ablation: What became of ablated components.
        seed: Seed of splits, controls and resampling.
        baseline: Score of every task on the intact model, on its report items.
        after: The same with the set ablated.
        drops: What every task lost: the claimed one, those of its skill, the others.
        off_target_drop: Mean drop of the others; None without others.
        off_target_ci: 95 % interval of that; None without others or statistics.
        worst_other: The other task that loses most, which the mean can hide; None without others,
            or where an older file does not say.
        specific_drop: The task's drop minus that; the task's drop without others.
        specific_ci: 95 % interval of that; None without others or statistics.
        level: Level of the tests and intervals.
        controls: Random sets, kind by kind.
        members: What each member contributes.
        curve: k from 0 on; None where it was not requested.
        ablations: The claim under other kinds of ablation.
        crossings: Generalization between tasks of the same capability.
        failures: Degenerate outputs, task by task.
        samples: Outputs side by side.
        verdict: The verdict; None without statistics.
        rows: Rows measured on the report items.
        notes: What the reader should know.
        documents: Which documents each part of the items holds.
    """

    kind: Literal["verification"] = "verification"
    model: ModelInfo
    task: str
    heads: tuple[str, ...]
    ablation: AblationInfo
    seed: int
    baseline: dict[str, float]
    after: dict[str, float]
    drops: tuple[TaskDrop, ...]
    off_target_drop: float | None
    off_target_ci: tuple[float, float] | None = None
    worst_other: str | None = None
    specific_drop: float
    specific_ci: tuple[float, float] | None = None
    level: float = 0.05
    controls: tuple[Controls, ...] = ()
    members: tuple[Member, ...] = ()
    curve: Curve | None = None
    ablations: tuple[AblationCheck, ...] = ()
    crossings: tuple[Crossing, ...] = ()
    failures: tuple[TaskFailures, ...] = ()
    samples: tuple[Sample, ...] = ()
    verdict: Verdict | None
    rows: int
    notes: tuple[str, ...] = ()
    documents: tuple[Documents, ...] = ()

    @property
    def selected(self) -> tuple[str, ...]:
        """The set that was verified."""
        return self.heads

    @property
    def drop(self) -> float:
        """What the claimed task lost."""
        return next(line.drop for line in self.drops if line.role == "task")

    @property
    def items(self) -> dict[str, int]:
        """Report items of every task."""
        return {line.task: line.items for line in self.drops}

    @property
    def off_target(self) -> Interval | None:
        """The mean drop of the others with its interval; None without others or statistics."""
        return _interval(self.off_target_drop, self.off_target_ci)

    @property
    def worst(self) -> TaskDrop | None:
        """What the other task loses that loses most; None without others."""
        return max(self.roles("other"), key=lambda line: line.drop, default=None)

    @property
    def specific(self) -> Interval | None:
        """The specific drop with its interval; None without others or statistics."""
        return _interval(self.specific_drop, self.specific_ci)

    def roles(self, role: Role) -> tuple[TaskDrop, ...]:
        """The drops of the tasks of one role."""
        return tuple(line for line in self.drops if line.role == role)

    def summary(self) -> tuple[str, ...]:
        """The verdict, the claim and what was measured."""
        return (
            "no verdict: no statistics were requested"
            if self.verdict is None
            else f"{self.verdict.label}: {self.verdict.text}",
            f"{self.model.name}, {self.task}: {listed(self.heads) or 'no components'}",
            f"{self.ablation.kind} ablation, {len(self.drops)} tasks, {self.rows:,} rows, "
            f"seed {self.seed}",
        )

    def records(self) -> list[dict[str, Any]]:
        """A line for each task: its scores, what it lost, and how sure that is."""
        lines = []
        for line in self.drops:
            low, high = line.ci or (None, None)
            lines.append({
                "task": line.task, "role": line.role, "metric": line.metric, "items": line.items,
                "before": self.baseline[line.task], "after": self.after[line.task],
                "drop": line.drop, "low": low, "high": high, "test": line.test, "p": line.p,
                "p_holm": line.p_holm,
            })  # fmt: skip
        return lines


def _interval(value: float | None, ends: tuple[float, float] | None) -> Interval | None:
    return None if value is None or ends is None else Interval(value, *ends)
