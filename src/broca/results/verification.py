"""The result of a verification: `verification.json`, and `verification` in `result.json`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from broca.options.base import Seed
from broca.results.base import AblationInfo, Interval, ModelInfo, Result, joined_names
from broca.results.pages.charts import Figure
from broca.results.pages.tables import Table
from broca.results.pages.template import filled
from broca.results.pages.verification import member_grid, verification_figures, verification_tables
from broca.results.sufficiency import Sufficiency

Role = Literal["task", "same_skill", "other", "at_chance"]
"""The role of a task in a claim: the claimed task, a task of the same capability, a control, or a
task that the intact model cannot do, so that it can show no damage."""

CORE = 0.25
"""Minimum contribution of a member of the core, as a share of the drop."""

BROKEN = 0.25
"""Minimum share of degenerate outputs that a headline states, and of degenerate and wrong outputs
of a broken model on unrelated tasks."""

CHANGED = 0.3
"""Minimum divergence of the model's own text that a headline states, in nats per token."""

KNOWN = 1000.0
"""Maximum perplexity of the intact model on text that it knows."""

VerdictLabel = Literal[
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
    """The drop of a task on its report items.

    Attributes:
        task: The task.
        role: Role of the task in the claim.
        metric: Its main metric.
        items: Number of report items, the same before and after.
        before: Score of the intact model.
        after: Score with the set ablated.
        drop: Loss of score; positive is worse.
        ci: 95 % paired bootstrap interval of the drop; None if no statistics were requested, as for
            all fields that follow.
        test: `mcnemar` for right/wrong metrics, `permutation` for continuous ones.
        p: Two-sided p-value of no change.
        p_holm: `p`, Holm-corrected over the tasks other than the claimed task; equal to `p` for the
            claimed task.
        chance: Score of guessing; None for metrics where less is better.
    """

    task: str
    role: Role
    metric: str
    items: int
    before: float
    after: float
    drop: float
    ci: tuple[float, float] | None = None
    test: str | None = None
    p: float | None = None
    p_holm: float | None = None
    chance: float | None = None

    @property
    def interval(self) -> Interval | None:
        """The drop with its interval; None without statistics."""
        return _interval(self.drop, self.ci)

    @property
    def below_chance(self) -> float:
        """The part of the drop below chance: noise or an inverted preference, not lost skill."""
        if not self.chance:
            return 0.0
        return max(0.0, min(self.before, self.chance) - self.after)


@dataclass(frozen=True)
class Documents:
    """Documents of a task in a part of the items, so that others can score the same documents.

    Attributes:
        task: The task, or the group.
        part: `locate`, `confirm` or `report`.
        member: The task of lm-eval; in a group it differs from `task`.
        split: Split of its data set; empty if the task names none.
        ids: lm-eval's `doc_id` of each document, its position in that split.
    """

    task: str
    part: str
    member: str
    split: str
    ids: tuple[int, ...]


def places_in(documents: Iterable[Documents], *parts: str) -> set[tuple[str, str, int]]:
    """Returns the documents of some parts of the items: lm-eval's task, split and `doc_id`."""
    lines = [line for line in documents if line.part in parts]
    return {(line.member, line.split, place) for line in lines for place in line.ids}


@dataclass(frozen=True)
class ControlSet:
    """A random set.

    Attributes:
        heads: Names of its members.
        drop: Drop of the task without the set.
        specific_drop: `drop` minus the mean drop of the others; None if the drop alone is so far
            below the real set's specific drop that the others were not measured.
        items: Number of the task's items on which it was measured.
    """

    heads: tuple[str, ...]
    drop: float
    specific_drop: float | None
    items: int = 0


@dataclass(frozen=True)
class Standing:
    """The rank of the real set among random sets.

    Attributes:
        value: Specific drop without the real set on the items of the controls.
        rank: 1 + the number of random sets that reach or exceed this value.
        p: `rank` / (random sets + 1).
        effect: `value` minus the mean of the random sets, in their standard deviations, with its
            95 % interval for a normal distribution; None if the random sets are all equal.
        ahead: Share of random sets that do not reach the value, with its exact 95 % interval.
    """

    value: float
    rank: int
    p: float
    effect: Interval | None
    ahead: Interval


@dataclass(frozen=True)
class Controls:
    """Random sets of the same size as the real one.

    Attributes:
        kind: `layers`: as many from each layer; `norm`: heads of nearly the same output norm.
        items: Number of the task's items on which close ones were measured.
        other_items: Number of items of all other tasks together.
        specific: Standing by the specific drop.
        sets: The random sets.
    """

    kind: str
    items: int
    other_items: int
    specific: Standing
    sets: tuple[ControlSet, ...]


SHORTENED = 500
"""Number of characters to which the prompts and outputs of samples are cut."""


@dataclass(frozen=True)
class Sample:
    """The output for an item before and after an ablation.

    Attributes:
        task: The task.
        prompt: The prompt.
        target: The right answer.
        before: Output before the ablation; in `samples` of a verification, of the intact model.
        after: Output after the ablation; in these samples, with the set ablated.
        scores: Scores of both; None if they are not known.
    """

    task: str
    prompt: str
    target: str
    before: str
    after: str
    scores: tuple[float, float] | None = None

    @property
    def changed(self) -> bool:
        """Whether the scores differ; the outputs, if no scores are known."""
        before, after = self.scores or (self.before.strip(), self.after.strip())
        return before != after


@dataclass(frozen=True)
class Member:
    """The contribution of a member to the task's drop.

    Attributes:
        head: Name of the member.
        alone: Drop when only it is ablated.
        restored: Decrease of the set's drop when it is the only member left intact.
        p: The smaller p-value of those of `alone` and `restored` that are losses, doubled,
            Holm-corrected over the members; 1 without a loss.
        needed: Whether `p` is at most the level of the verification.
        others: Drop of every other task when only it is ablated, on few items.
    """

    head: str
    alone: Interval
    restored: Interval
    p: float
    needed: bool
    others: dict[str, Interval] = field(default_factory=dict)

    @property
    def contribution(self) -> float:
        """The larger of `alone` and `restored`."""
        return max(self.alone.value, self.restored.value)


@dataclass(frozen=True)
class AblationCheck:
    """The claim under one kind of ablation.

    Attributes:
        kind: Kind of ablation, such as `zero` or `mean`.
        drop: Drop of the task.
        specific: Specific drop; None without others.
        p: P-value of no change.
        survives: Whether the intervals of both lie above zero.
    """

    kind: str
    drop: Interval
    specific: Interval | None
    p: float
    survives: bool


@dataclass(frozen=True)
class TaskFailures:
    """Degenerate outputs of a task.

    Attributes:
        task: The task.
        items: Number of examined items.
        before: Share of outputs with each failure mode in the intact model.
        after: Share of outputs with each failure mode with the set ablated.
        excess: Share of items whose output is degenerate with the set ablated and not in the intact
            model.
        most_common: The most common output with the set ablated.
        explained: Net loss of score on these items as a share of the task's score above chance.
    """

    task: str
    items: int
    before: dict[str, float]
    after: dict[str, float]
    excess: float
    most_common: str
    explained: float

    @property
    def damage(self) -> float:
        """Share of outputs that count as broken: the smaller of `excess` and `explained`."""
        return min(self.excess, self.explained)


@dataclass(frozen=True)
class TextChange:
    """The change of the model's next-token distribution on neutral text.

    Attributes:
        tokens: Number of predicted tokens.
        before: Perplexity of the intact model.
        after: Perplexity with the set ablated.
        divergence: Mean Kullback-Leibler divergence of the intact model's distribution from the
            ablated model's, in nats per token.
    """

    tokens: int
    before: float
    after: float
    divergence: float

    @property
    def changed(self) -> bool:
        """Whether it changes much; a text that the intact model does not know shows nothing."""
        return self.before <= KNOWN and self.divergence >= CHANGED

    @property
    def says(self) -> str:
        """The numbers in words."""
        if self.before > KNOWN:
            return "neutral text shows nothing, as the intact model does not know its language"
        return (
            f"perplexity {self.before:.3g} -> {self.after:.3g} and divergence "
            f"{self.divergence:.2f} nats per token on neutral text"
        )


@dataclass(frozen=True)
class Verdict:
    """The verdict of a verification.

    Attributes:
        label: The verdict in one or a few words.
        text: The verdict in one sentence, with its numbers.
        items_needed: Number of report items that would be enough if the label is `inconclusive`;
            else None.
        headline: The verdict in a short sentence without intervals.
        provisional: Whether more random sets or items could change it.
    """

    label: VerdictLabel
    text: str
    items_needed: int | None = None
    headline: str = ""
    provisional: bool = False


class Verification(
    Result, file="verification.json", page="verification.html", verb="broca verify", rows="drops"
):
    """The drops without a set of components on held-out items, and the verdict.

    Without statistics, `drops` have no intervals and no p-values, and there is no verdict.

    Attributes:
        model: The model.
        task: The claimed task.
        heads: The set.
        ablation: How components were ablated.
        seed: Seed of splits, controls and resampling.
        drops: Scores and drop of every task: the claimed task, those of its skill, the others.
        off_target_drop: Mean loss of skill of the others, weighted by what they can lose; None
            without others that can lose any.
        off_target_ci: 95 % interval of the off-target drop; None without others or statistics.
        specific_drop: The task's loss of skill minus the off-target drop; None without others.
        specific_ci: 95 % interval of the specific drop; None without others or statistics.
        level: Level of the tests and intervals.
        controls: Random sets, kind by kind.
        members: Contribution of each member.
        ablations: The claim under other kinds of ablation.
        failures: Degenerate outputs, task by task.
        samples: Outputs of the intact and the ablated model, side by side.
        text: Change of the model's own text; None without statistics.
        verdict: The verdict; None without statistics.
        was: The verdict of an earlier verification of the set, which this one replaces.
        enough: What the set does alone; None if it was not measured.
        dropped: Members that a search selected and that contributed nothing on these items; they
            are not in `heads`.
        rows: Number of rows on the report items.
        task_options: Task options that differ from the tasks' files, if it is a result of its own;
            a localization has those of its verification.
        notes: Notes for the reader.
        documents: The documents of each part of the items.
    """

    kind: Literal["verification"] = "verification"
    model: ModelInfo
    task: str
    heads: tuple[str, ...]
    ablation: AblationInfo
    seed: Seed
    drops: tuple[TaskDrop, ...]
    off_target_drop: float | None
    off_target_ci: tuple[float, float] | None = None
    specific_drop: float | None
    specific_ci: tuple[float, float] | None = None
    level: float = 0.05
    controls: tuple[Controls, ...] = ()
    members: tuple[Member, ...] = ()
    ablations: tuple[AblationCheck, ...] = ()
    failures: tuple[TaskFailures, ...] = ()
    samples: tuple[Sample, ...] = ()
    text: TextChange | None = None
    verdict: Verdict | None
    was: Verdict | None = None
    enough: Sufficiency | None = None
    dropped: tuple[str, ...] = ()
    rows: int = 0
    task_options: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    documents: tuple[Documents, ...] = ()

    @property
    def selected(self) -> tuple[str, ...]:
        """The set that was verified."""
        return self.heads

    @property
    def baseline(self) -> dict[str, float]:
        """Score of every task on the intact model, on its report items."""
        return {line.task: line.before for line in self.drops}

    @property
    def after(self) -> dict[str, float]:
        """Score of every task with the set ablated."""
        return {line.task: line.after for line in self.drops}

    @property
    def drop(self) -> float:
        """Drop of the claimed task."""
        return next(line.drop for line in self.drops if line.role == "task")

    @property
    def items(self) -> dict[str, int]:
        """Number of report items of every task."""
        return {line.task: line.items for line in self.drops}

    @property
    def off_target(self) -> Interval | None:
        """The mean drop of the others with its interval; None without others or statistics."""
        return _interval(self.off_target_drop, self.off_target_ci)

    @property
    def worst(self) -> TaskDrop | None:
        """The drop of the other task with the largest drop, which the mean can hide."""
        return max(self.roles("other"), key=lambda line: line.drop, default=None)

    @property
    def specific(self) -> Interval | None:
        """The specific drop with its interval; None without others or statistics."""
        return _interval(self.specific_drop, self.specific_ci)

    def roles(self, role: Role) -> tuple[TaskDrop, ...]:
        """Returns the drops of the tasks with a role."""
        return tuple(line for line in self.drops if line.role == role)

    @property
    def ways(self) -> str:
        """Whether the set is necessary, sufficient, or both; empty if that was not measured."""
        if self.enough is None or self.enough.reason or self.verdict is None:
            return ""
        ways = ["necessary"] * (self.verdict.label == "specific")
        ways += [f"sufficient at k = {len(self.heads)}"] * self.enough.sets[0].sufficient
        return " and ".join(ways) or "not shown to be necessary or sufficient"

    @property
    def core(self) -> tuple[str, ...]:
        """Members whose contribution is at least a quarter of the drop."""
        needed = [line for line in self.members if line.needed]
        large = [line for line in needed if line.contribution >= CORE * self.drop]
        return tuple(line.head for line in large or needed) or self.heads

    @property
    def claim(self) -> str:
        """The members that contribute: the core, then the others with what they add."""
        more = [
            f"{line.head} (adds {100 * line.contribution:.0f} points)"
            for line in self.members
            if line.needed and line.head not in self.core
        ]
        return joined_names(self.core) + (f"; with them {', '.join(more)}" if more else "")

    @property
    def headline(self) -> str:
        """The verdict as a page and a terminal begin; a need is stated only if it is specific."""
        name = self.model.short_name
        if self.verdict is None:
            loses = "loses" if self.drop > 0 else "does not lose"
            without = f"{name} without {joined_names(self.heads)}"
            return f"{without} {loses} points of {self.task} (not verified)"
        if self.verdict.label != "specific":
            return self.verdict.headline
        needed, _, more = self.claim.partition(";")
        return f"{name} needs {needed} for {self.task}{more and f';{more}'}{self.damage}"

    @property
    def damage(self) -> str:
        """What is broken besides the task, in a clause for the headline; empty if nothing is."""
        said = []
        names = [line.task for line in self.roles("other") or self.roles("task")]
        shares = [line.excess for line in self.failures if line.task in names]
        if shares and sum(shares) >= BROKEN * len(shares):
            said.append(f"{sum(shares) / len(shares):.0%} of the outputs collapse")
        if self.text is not None and self.text.changed:
            said.append(f"its own text changes ({self.text.says})")
        return f"; {' and '.join(said)}" if said else ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict below the headline, with the one that it replaces; empty without one."""
        if self.verdict is None:
            return ()
        sure = " (provisional)" if self.verdict.provisional else ""
        lines = [f"{self.verdict.label}{sure}: {self.verdict.text}"]
        if self.was is not None and self.was.label != self.verdict.label:
            lines.append(f"was {self.was.label}, because {self.was.text}")
        if self.verdict.items_needed:
            lines.append(f"About {self.verdict.items_needed:,} report items would be enough.")
        if self.dropped:
            lines.append(f"dropped, as they contribute nothing: {joined_names(self.dropped)}")
        if self.text is not None:
            lines.append(f"{self.text.says}.")
        if self.enough is not None:
            ways = self.ways and f"{self.ways}: "
            lines.append(f"{ways}{self.enough.says(self.heads, self.task)}.")
        return tuple(lines)

    def figures(self) -> tuple[Figure, ...]:
        """Returns its figures: scores, random sets, and the set within the model."""
        return (*verification_figures(self).values(), member_grid(self))

    def page(self) -> str:
        """Renders the page of a verification without a search."""
        return filled(
            "verification", verification=self, grid_figure=member_grid(self),
            tables=verification_tables(self), figures=verification_figures(self),
        )  # fmt: skip

    def pages(self, folder: Path) -> dict[str, str]:
        """Returns the report of the run whose selection was verified, else the own page."""
        return self.report_in(folder) or super().pages(folder)

    def terminal(self) -> Iterator[str | Table]:
        """Yields the verdict and the tables."""
        tables = verification_tables(self)
        yield f"{self.headline}."
        yield from self.lines
        yield tables["tasks"].pick("task|role|items|chance|intact|ablated|points lost|p (Holm)")
        yield from (tables[name] for name in ("controls", "members", "ablations", "failures"))
        if self.enough is not None:
            yield from self.enough.tables().values()
        alone = self.enough.notes if self.enough else ()
        yield from (f"note: {note}" for note in (*self.notes, *alone))
        yield f"{self.ablation.described}, {self.rows:,} rows, seed {self.seed}"


def _interval(value: float | None, ends: tuple[float, float] | None) -> Interval | None:
    return None if value is None or ends is None else Interval(value, *ends)
