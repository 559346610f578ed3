"""The result of a localization: `result.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isnan, nan
from typing import Any, Literal, Protocol

from broca.results.base import ZEROED, AblationInfo, ModelInfo, Result, joined_names
from broca.results.verification import Verdict, Verification


@dataclass(frozen=True)
class SearchInfo:
    """The search and its settings.

    Attributes:
        method: Name of the method.
        options: Settings of the method, including those that it chose itself.
        seed: Seed of the run.
        response: Response of its last plan, and of its intervals; empty in older files.
    """

    method: str
    options: dict[str, Any]
    seed: int
    response: str = ""


@dataclass(frozen=True)
class AdditivityInfo:
    """How well effects add up, by cross-validation over masks.

    Attributes:
        explained: Share of the variance of held-out responses that the linear model explains.
        rank_correlation: Spearman correlation of predicted and measured responses.
        masks: Number of masks.
    """

    explained: float
    rank_correlation: float
    masks: int


@dataclass(frozen=True)
class AnswerInfo:
    """The answer of a search, one of three.

    Attributes:
        says: `found`; `nothing` if no set has a specific drop of `bound` or more; `not enough rows`
            if the measured rows cannot decide.
        bound: Upper bound, at 95 %, of the specific drop of the best set; null if a set was found,
            or if large masks lose more than their components explain.
        rows_needed: Approximate number of rows that would decide; null if the measured rows decide,
            or if the number cannot be estimated.
    """

    says: Literal["found", "nothing", "not enough rows"]
    bound: float | None = None
    rows_needed: int | None = None


@dataclass(frozen=True)
class RankedComponent:
    """A line of the ranking.

    Attributes:
        name: Name, such as `L12H3`.
        layer: Decoder layer, from 0.
        head: Number within the layer.
        effect: Change of the response when it is ablated; negative = the task needs it.
        ci: Interval of the effect, if the method gives one. It is extended to include the effect,
            because a regression may shrink an effect out of the interval of the unshrunken effect.
        frequency: Share of resamples in which it is selected, if the method gives one.
        p_value: One-sided p-value of no harm, if the method gives one.
        q_value: p-value corrected for the number of components.
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
    """The parts of a component's name."""

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
    """Makes the lines of a ranking: components in order, each with its statistics.

    Args:
        components: All components, by column.
        effects: Effect of each, `(components,)`.
        order: Columns, the most harmful ablation first.
        intervals: Interval of each effect, `(components, 2)`; NaN for none.
        frequency: Share of resamples in which each is selected, `(components,)`.
        p_values: p-values of no harm, `(components,)`.
        q_values: Corrected p-values, `(components,)`.
    """

    def statistic(values: Any, column: int) -> float | None:
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
                frequency=statistic(frequency, column),
                p_value=statistic(p_values, column),
                q_value=statistic(q_values, column),
            )
        )
    return tuple(lines)


def _around(effect: float, low: float, high: float) -> tuple[float, float]:
    """Extends an interval to include its estimate, which may be shrunken."""
    return min(float(low), effect), max(float(high), effect)


@dataclass(frozen=True)
class Interaction:
    """The interaction of two components, in the task's metric.

    Attributes:
        first: Name of the first component.
        second: Name of the second component.
        first_effect: Change of the score when only the first is ablated.
        second_effect: Change of the score when only the second is ablated.
        joint_effect: Change when both are ablated.
        interaction: The joint effect minus the two single effects: negative if the components back
            each other up, positive if their ablations harm the same answers.
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
    """The selection of a search on other items.

    Attributes:
        seed: Seed of the search.
        selected: Names of the components.
        answer: Its answer, one of three; null for methods that give none.
        rows: Number of (mask, item) rows that it measured.
    """

    seed: int
    selected: tuple[str, ...]
    answer: Literal["found", "nothing", "not enough rows"] | None
    rows: int


@dataclass(frozen=True)
class Cost:
    """The cost of a localization.

    Attributes:
        rows: Number of (mask, item) rows of the search.
        verification_rows: Number of rows on the report items, intact and ablated.
        tokens: Number of tokens that the model read or generated, padding excluded.
        wall_s: Seconds from the loaded model to the result.
        measured: Number of rows of both kinds that the run measured itself, in all its processes;
            the others were in the journal or were requested twice. None if they were not counted.
    """

    rows: int
    verification_rows: int
    tokens: int
    wall_s: float
    measured: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Localization(Result, file="result.json", page="report.html", verb="broca localize"):
    """The result of a localization.

    Attributes:
        model: The model.
        task: The task that was localized.
        others: The tasks that the selection should not affect.
        same_skill: Tasks of the same capability, reported separately.
        search: The method and its settings.
        cost: Rows, tokens and time.
        baseline: Score of every task on the intact model, on its report items.
        ranking: All components, the most harmful ablation first.
        selected: Names of the selected components, at most k.
        abstained: Whether nothing was selected.
        reason: Why nothing was selected; empty otherwise.
        answer: Whether a set was found, does not exist, or needs more rows; None for methods that
            give no answer.
        verification: The drops without the selection on the report items, and the verdict. In the
            file it omits keys that the localization has: model, heads, ablation, seed, rows.
        response: Response in which effects are measured.
        components: Kinds of components, such as `heads`.
        ablation: How components were ablated.
        task_options: Task options that differ from the tasks' files.
        off_target_effects: Mean change of the other tasks' response when a component is ablated, if
            the method measures it.
        shared_effects: For each component that the other tasks need too, if the method looks for
            them: the change of every task's score when it is ablated alone, on some `report` items.
            The most harmful component comes first.
        universal: The components among them that most tasks need to about the same degree, by the
            rule of the atlas.
        interactions: Interactions of pairs of the leading components on `confirm` items, the
            strongest first; empty if they were not requested.
        repeats: Selections of the same search on other items, if they were requested.
        additivity: How well effects add up; None if the method measures no random masks, or too
            few.
        notes: Notes for the reader, such as truncated prompts or other tasks at chance.
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
    ablation: AblationInfo = ZEROED
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
        """All tasks that were measured: the localized task, those of its skill, the others."""
        return (self.task, *self.same_skill, *self.others)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if no statistics were requested, or if nothing was selected."""
        return self.verification.verdict

    @property
    def times_selected(self) -> dict[str, int]:
        """How many searches, repeats included, select each component, in decreasing order."""
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
        """Returns the verdict, the selection and the search."""
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
            f"{self.model.name}, {self.task}: {joined_names(self.selected) or 'no components'}",
            f"{self.search.method}, {self.cost.rows:,} rows, seed {self.search.seed}, "
            f"{len(self.ranking)} components ranked",
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each component, in the order of the ranking."""
        return ranking_records(self.ranking, self.selected, self.off_target_effects)


def ranking_records(
    ranking: Sequence[RankedComponent],
    selected: Sequence[str],
    off_target_effects: dict[str, float] | None = None,
) -> list[dict[str, Any]]:
    """Returns a line for each component of a ranking: its statistics and whether it is selected."""
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
