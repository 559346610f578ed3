"""What a localization found: `result.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isnan, nan
from typing import Any, Literal, Protocol

from broca.results.base import AblationInfo, ModelInfo, Result, listed
from broca.results.verification import Verdict, Verification


@dataclass(frozen=True)
class SearchInfo:
    """The search and its settings.

    Attributes:
        method: Name of the method.
        options: Its settings, those that it chose itself among them.
        seed: Seed of the run.
        response: What the rows of its last plan returned, which its intervals are in; empty where
            an older file does not say.
    """

    method: str
    options: dict[str, Any]
    seed: int
    response: str = ""


@dataclass(frozen=True)
class AdditivityInfo:
    """How well effects add up, on masks that were held out in turn.

    Attributes:
        explained: Share of the variance of their responses that the linear model explains.
        rank_correlation: Spearman's, of predicted with measured responses.
        masks: How many masks.
    """

    explained: float
    rank_correlation: float
    masks: int


@dataclass(frozen=True)
class AnswerInfo:
    """Which of three answers a search gives.

    Attributes:
        says: `found`; `nothing`, where no set costs the task `bound` or more beyond the others;
            `not enough rows`, where the rows spent do not tell.
        bound: What the best of all sets costs the task beyond the others at most, at 95 %; null
            where a set was found.
        rows_needed: About how many rows would tell; null where those spent do, or where that is
            more than can be guessed.
    """

    says: Literal["found", "nothing", "not enough rows"]
    bound: float | None = None
    rows_needed: int | None = None


@dataclass(frozen=True)
class RankedComponent:
    """One line of the ranking.

    Attributes:
        name: Such as `L12H3`.
        layer: Decoder layer, from 0.
        head: Number within the layer.
        effect: Change of the response when it is ablated; negative = the task needs it.
        ci: Interval of the effect, where the method gives one, wide enough to include it: a
            regression may shrink the effect out of the interval of the unshrunken one.
        frequency: Share of resamples in which it is selected, where the method gives one.
        p_value: Of no harm, one-sided, where the method gives one.
        q_value: The same, corrected for the number of components.
    """

    name: str
    layer: int
    head: int | None
    effect: float
    ci: tuple[float, float] | None = None
    frequency: float | None = None
    p_value: float | None = None
    q_value: float | None = None


class NamedPart(Protocol):
    """What a line of a ranking says of a component."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def layer(self) -> int: ...  # noqa: D102
    @property
    def index(self) -> int | None: ...  # noqa: D102


def ranked(
    components: Sequence[NamedPart],
    effects: Sequence[float] | Any,
    order: Sequence[int],
    *,
    intervals: Any = None,
    frequency: Any = None,
    p_values: Any = None,
    q_values: Any = None,
) -> tuple[RankedComponent, ...]:
    """The lines of a ranking: components in an order, each with what is known of it.

    Args:
        components: All components, by column.
        effects: Effect of each, `(components,)`.
        order: Columns, most harmful to lose first.
        intervals: Interval of each effect, `(components, 2)`; NaN where there is none.
        frequency: How often each is selected, `(components,)`.
        p_values: Of no harm, `(components,)`.
        q_values: The same, corrected, `(components,)`.
    """

    def known(values: Any, column: int) -> float | None:
        return None if values is None else float(values[column])

    lines = []
    for column in order:
        low, high = (nan, nan) if intervals is None else intervals[column]
        lines.append(
            RankedComponent(
                name=components[column].name,
                layer=components[column].layer,
                head=components[column].index,
                effect=float(effects[column]),
                ci=None if isnan(low) else _around(float(effects[column]), low, high),
                frequency=known(frequency, column),
                p_value=known(p_values, column),
                q_value=known(q_values, column),
            )
        )
    return tuple(lines)


def _around(effect: float, low: float, high: float) -> tuple[float, float]:
    """An interval that is wide enough to hold its estimate, which may be shrunken."""
    return min(float(low), effect), max(float(high), effect)


@dataclass(frozen=True)
class Interaction:
    """How the effects of two components depend on one another, in the task's metric.

    Attributes:
        first: Name of the first.
        second: Name of the second.
        first_effect: Change of the score when the first alone is ablated.
        second_effect: The same of the second.
        joint_effect: Change when both are ablated.
        interaction: The joint effect less the two single ones: below zero where they stand in for
            each other, above zero where they harm the same answers.
        ci: 90 % interval of the interaction.
    """

    first: str
    second: str
    first_effect: float
    second_effect: float
    joint_effect: float
    interaction: float
    ci: tuple[float, float]


@dataclass(frozen=True)
class Repeat:
    """What a search on other items selects.

    Attributes:
        seed: Its seed.
        selected: Names of the components.
        answer: Which of three answers it gives; null of methods that cannot tell these apart.
        rows: (mask, item) rows that it measured.
    """

    seed: int
    selected: tuple[str, ...]
    answer: Literal["found", "nothing", "not enough rows"] | None
    rows: int


@dataclass(frozen=True)
class Cost:
    """What it took.

    Attributes:
        rows: (mask, item) rows that the search measured.
        verification_rows: Rows measured on the report items, before and after.
        tokens: Tokens that the model read or wrote, padding excluded.
        wall_s: Seconds from the loaded model to the result.
        measured: Rows of both kinds that the run measured itself, in all its processes; the others
            were in the journal, or were asked twice. None where that was not counted.
    """

    rows: int
    verification_rows: int
    tokens: int
    wall_s: float
    measured: int | None = None


_ZERO = AblationInfo("zero", 0.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class Localization(Result, file="result.json", page="report.html", verb="broca localize"):
    """Everything that a localization found, and how.

    Attributes:
        model: The model.
        task: The task that was localized.
        others: The tasks that the selection should leave alone.
        same_skill: Tasks of the same capability, reported apart.
        search: The method and its settings.
        cost: Rows, tokens and time.
        baseline: Score of every task on the intact model, on its report items.
        ranking: All components, most harmful to lose first.
        selected: Names of the chosen components, at most k.
        abstained: Whether nothing was selected.
        reason: Why nothing was selected; empty otherwise.
        answer: Whether something was found, is not there, or needs more rows; None of methods that
            cannot tell these apart.
        verification: What the selection costs on the report items, and the verdict. In the file it
            leaves out what the localization says: model, heads, ablation, seed, baseline, rows.
        response: What the effects are measured in.
        components: Which parts of the model could be ablated, such as `heads`.
        ablation: What became of them.
        task_options: How the tasks were asked, where that differs from their files.
        off_target_effects: Mean change of the other tasks' response when a component is ablated,
            where the method measures it.
        shared_effects: Of each component that the other tasks need too, where the method looks for
            them: minus what every task's score loses when it is ablated alone, on some `report`
            items of each. What they lose most to comes first.
        universal: Those of them that most tasks need to about the same degree, by the rule of the
            atlas.
        interactions: Pairs of the leading components, the strongest first, if they were requested;
            on `confirm` items.
        repeats: What the same search selects on other items, if that was requested.
        additivity: How well effects add up; None where the method measures no random masks, or
            too few.
        notes: What the reader should know, such as cut prompts or other tasks at chance.
    """

    kind: Literal["localization"] = "localization"
    model: ModelInfo
    task: str
    others: tuple[str, ...]
    same_skill: tuple[str, ...] = ()
    search: SearchInfo
    cost: Cost
    baseline: dict[str, float]
    ranking: tuple[RankedComponent, ...]
    selected: tuple[str, ...]
    abstained: bool
    reason: str
    verification: Verification
    response: str = "accuracy"
    components: str = "heads"
    ablation: AblationInfo = _ZERO
    task_options: dict[str, Any] = field(default_factory=dict)
    off_target_effects: dict[str, float] = field(default_factory=dict)
    shared_effects: dict[str, dict[str, float]] = field(default_factory=dict)
    universal: tuple[str, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    answer: AnswerInfo | None = None
    repeats: tuple[Repeat, ...] = ()
    additivity: AdditivityInfo | None = None
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks that were measured: the localized one, those of its skill, the others."""
        return (self.task, *self.same_skill, *self.others)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None where no statistics were requested, or nothing was selected."""
        return self.verification.verdict

    @property
    def times_selected(self) -> dict[str, int]:
        """In how many searches, the repeats among them, each component is selected, most first."""
        searches = [self.selected, *(repeat.selected for repeat in self.repeats)]
        counts = Counter(name for selected in searches for name in selected)
        return dict(sorted(counts.items(), key=lambda entry: -entry[1]))

    @property
    def overlap(self) -> float | None:
        """Mean overlap of two searches' selections (Jaccard); None without repeats.

        Two that select nothing agree.
        """
        searches = [set(self.selected), *(set(repeat.selected) for repeat in self.repeats)]
        shares = [
            len(first & second) / len(first | second) if first | second else 1.0
            for first, second in combinations(searches, 2)
        ]
        return sum(shares) / len(shares) if shares else None

    def summary(self) -> tuple[str, ...]:
        """The verdict, the selection and how it was found."""
        if self.abstained:
            first = f"nothing selected: {self.reason}"
        elif self.verdict is None:
            drop, specific = self.verification.drop, self.verification.specific_drop
            first = (
                f"not verified: {self.task} loses {100 * drop:.1f} points, "
                f"{100 * specific:.1f} of them specific"
            )
        else:
            first = f"{self.verdict.label}: {self.verdict.text}"
        return (
            first,
            f"{self.model.name}, {self.task}: {listed(self.selected) or 'no components'}",
            f"{self.search.method}, {self.cost.rows:,} rows, seed {self.search.seed}, "
            f"{len(self.ranking)} components ranked",
        )

    def records(self) -> list[dict[str, Any]]:
        """A line for each component, in the order of the ranking."""
        return ranking_records(self.ranking, self.selected, self.off_target_effects)


def ranking_records(
    ranking: Sequence[RankedComponent],
    selected: Sequence[str],
    off_target_effects: dict[str, float] | None = None,
) -> list[dict[str, Any]]:
    """A line for each component of a ranking: what is known of it, and whether it is selected."""
    lines = []
    for line in ranking:
        low, high = line.ci or (None, None)
        record: dict[str, Any] = {
            "component": line.name, "layer": line.layer, "head": line.head,
            "effect": line.effect, "low": low, "high": high, "frequency": line.frequency,
            "p_value": line.p_value, "q_value": line.q_value, "selected": line.name in selected,
        }  # fmt: skip
        if off_target_effects:
            record["off_target_effect"] = off_target_effects.get(line.name)
        lines.append(record)
    return lines
