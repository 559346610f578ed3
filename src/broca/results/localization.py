"""The result of a localization: `result.json`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import ceil
from pathlib import Path
from typing import Any, Literal

import msgspec

from broca.errors import BadInput
from broca.options.base import Seed
from broca.results.base import ZEROED, AblationInfo, ModelInfo, Result, joined_names, tables_of
from broca.results.claim import Claim, Replication
from broca.results.files import ResultT, plain, read_text
from broca.results.pages.charts import Figure
from broca.results.pages.grid import counted, noun
from broca.results.pages.localization import (
    component_grid,
    interaction_table,
    localization_tables,
    ranking_table,
)
from broca.results.pages.tables import Table
from broca.results.pages.template import filled
from broca.results.pages.verification import verification_figures, verification_tables
from broca.results.runs import RunFolderRecord
from broca.results.stress_test import StressTest
from broca.results.sufficiency import Alternative, Backup
from broca.results.verification import Verdict, Verification


@dataclass(frozen=True)
class SearchInfo:
    """The search and its settings.

    Attributes:
        method: Name of the method.
        options: Settings of the method, including those that it chose itself.
        seed: Seed of the run.
        response: Response of its last plan.
        items: Maximum number of items of each task; 0 in results that do not record it.
    """

    method: str
    options: dict[str, Any]
    seed: Seed
    response: str = ""
    items: int = 0


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

    @property
    def says(self) -> str:
        """The numbers in words."""
        return (
            f"additivity: sums of effects explain {self.explained:.0%} of the variance on held-out "
            f"masks (rank correlation {self.rank_correlation:.2f}, {self.masks:,} masks)"
        )


@dataclass(frozen=True)
class Interaction:
    """Two or more components whose effects do not add up.

    Attributes:
        heads: Their names.
        effect: Change of the response where all of them are ablated, beyond those of each and of
            the other interactions among them.
        masks: Number of masks that ablate all of them.
    """

    heads: tuple[str, ...]
    effect: float
    masks: int


@dataclass(frozen=True)
class InteractionInfo:
    """What interactions explain beyond single components, by cross-validation over masks.

    Attributes:
        additive: Share of the variance of held-out responses that single components explain.
        explained: The share that they and the interactions explain.
        found: The interactions that matter, the largest effect first.
    """

    additive: float
    explained: float
    found: tuple[Interaction, ...]

    @property
    def says(self) -> str:
        """The shares in words."""
        if not self.found:
            return "interactions: none of several components is significant beyond the sums"
        return (
            f"interactions: with them {self.explained:.1%} of the variance on held-out masks is "
            f"explained, without them {self.additive:.1%}"
        )


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
        frequency: Share of resamples of the search's rows, or of draws of their posterior, that
            select it, if the method gives one.
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


_RANKED_SHOWN = 10
"""Number of components that a terminal shows; the page has all."""


@dataclass(frozen=True)
class Repeat:
    """The selection of a search on other items.

    Attributes:
        seed: Seed of the search.
        selected: Names of the components.
        answer: Its answer, one of three; null for methods that give none.
        rows: Number of (mask, item) rows that it measured.
    """

    seed: Seed
    selected: tuple[str, ...]
    answer: Literal["found", "nothing", "not enough rows"] | None
    rows: int


@dataclass(frozen=True)
class Cost:
    """The cost of a localization.

    Attributes:
        rows: Number of (mask, item) rows of the search.
        verification_rows: Number of rows on the report items, intact and ablated.
        tokens: Number of tokens that the model read or generated for these rows, padding excluded.
        wall_s: Seconds from the loaded model to the result, with other searches.
        measured: Number of rows of both kinds that the run measured itself, in all its processes;
            the others were in the journal or were requested twice. None if they were not counted.
            `repeats` and `alternatives` have the rows of their searches.
    """

    rows: int
    verification_rows: int
    tokens: int
    wall_s: float
    measured: int | None = None


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
        verification: The drops without the selection on the report items, and the verdict.
        response: Response in which effects are measured.
        components: Kinds of components, such as `heads`.
        ablation: How components were ablated.
        task_options: Task options that differ from the tasks' files.
        off_target_effects: Mean change of the other tasks' response when a component is ablated, if
            the method measures it.
        shared: Components that the search set apart, as the other tasks need them too; empty for
            methods that do not look for them.
        repeats: Selections of the same search on other items, if they were requested.
        additivity: How well effects add up; None if the method measures no random masks, or too
            few.
        alternatives: Other sets, if they were searched.
        backups: Members of all sets that take over from each other.
        digests: Digests of the tokenizer, of the definition of the task and of its documents.
        wordings: Tasks of the package that ask the same documents in other words.
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
    shared: tuple[str, ...] = ()
    answer: AnswerInfo | None = None
    repeats: tuple[Repeat, ...] = ()
    additivity: AdditivityInfo | None = None
    alternatives: tuple[Alternative, ...] = ()
    backups: tuple[Backup, ...] = ()
    digests: dict[str, str] = field(default_factory=dict)
    wordings: tuple[str, ...] = ()
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
    def searches(self) -> list[tuple[str, ...]]:
        """The selection of every search, the first with the members that its verification drops."""
        first = (*self.selected, *self.verification.dropped)
        return [first, *(repeat.selected for repeat in self.repeats)]

    @property
    def times_selected(self) -> dict[str, int]:
        """How many searches, repeats included, select each component, in decreasing order."""
        counts = Counter(name for selected in self.searches for name in selected)
        return dict(counts.most_common())

    @property
    def overlap(self) -> float | None:
        """Mean overlap of two searches' selections (Jaccard); None without repeats.

        Two that select nothing agree.
        """
        shares = [
            len(first & second) / len(first | second) if first | second else 1.0
            for first, second in combinations(map(set, self.searches), 2)
        ]
        return sum(shares) / len(shares) if shares else None

    @property
    def stability(self) -> str:
        """How often the search would select the core; empty if it is not known."""
        often = {line.name: line.frequency for line in self.ranking}
        core = [(name, often.get(name)) for name in self.verification.core]
        shares = [f"{name} in {share:.0%}" for name, share in core if share is not None]
        pooled = self.search.method == "pooled"
        draws = "draws of the search's beliefs" if pooled else "resamples of the search's rows"
        return f"{draws} select {', '.join(shares)}" if shares else ""

    @property
    def headline(self) -> str:
        """The answer, or the verdict of its verification, as a page and a terminal begin."""
        if not self.abstained:
            return self.verification.headline
        nouns, model = noun(line.name for line in self.ranking), self.model.short_name
        if self.answer is not None and self.answer.says == "not enough rows":
            return f"Not enough rows to tell which {nouns} {model} needs for {self.task}"
        if self.answer is not None and self.answer.bound is not None:
            bound = ceil(1000 * self.answer.bound) / 10  # rounded down it would claim too much
            return (
                f"No set of {nouns} of {model} costs {self.task} {bound:g} points or more beyond "
                "the other tasks"
            )
        return f"No {nouns} found that {model} needs for {self.task}"

    def figures(self) -> tuple[Figure, ...]:
        """Returns its figures: the components, and those of the verification."""
        return (component_grid(self), *verification_figures(self.verification).values())

    def page(
        self,
        stress: StressTest | None = None,
        claim: Claim | None = None,
        replication: Replication | None = None,
        *,
        command: str = "",
        place: str = "RUN",
    ) -> str:
        """Renders the report.

        Args:
            stress: A stress test of the selection, which is summed up.
            claim: The claim about the selection.
            replication: Its replication.
            command: The command line that made it, if it is known.
            place: The folder, for the next commands.
        """
        verification = self.verification
        names = [line.name for line in self.ranking]
        return filled(
            "localization", result=self, counted=counted(names), verification=verification,
            noun_one=noun(names, plural=False), grid_figure=component_grid(self), stress=stress,
            claim=claim, replication=replication, command=command, place=place,
            tables=verification_tables(verification) | localization_tables(self),
            figures=verification_figures(verification),
        )  # fmt: skip

    def newest(self, folder: Path) -> Localization:
        """Returns the result with the verification that a later command left in its folder."""
        later, shown = self._later(Verification, folder), self.verification
        if later is not None:
            later = replace(later, dropped=shown.dropped)
        if later is None or replace(shown, was=later.was, documents=later.documents) == later:
            return self
        documents = (*shown.documents, *later.documents)
        notes = self.notes
        if later.ablation != shown.ablation:
            notes += (f"the scores, drops and verdict are those of {later.ablation.described}",)
        later = replace(later, was=self.verdict, documents=documents)
        return replace(self, verification=later, notes=notes)

    def _later(self, kind: type[ResultT], folder: Path) -> ResultT | None:
        """Returns what a later command left in the folder on the same components, if anything."""
        later = kind.read(folder) if (folder / kind.FILE).is_file() else None
        return later if later is not None and later.concerns(self) else None

    def pages(self, folder: Path) -> dict[str, str]:
        """Returns the report, with the results of later commands on the same components."""
        later: list[Any] = [self._later(kind, folder) for kind in (StressTest, Claim, Replication)]
        place = shlex.quote(folder.name or str(folder))
        page = self.newest(folder).page(*later, command=command_in(folder), place=place)
        return {self.PAGE: page}

    def terminal(self) -> Iterator[str | Table]:
        """Yields the answer, scores and drops, and what else was measured."""
        yield f"{self.headline}."
        if self.abstained:
            yield f"Nothing was selected: {self.reason}."
        else:
            yield from self.verification.lines
            if self.stability:
                yield f"{self.stability}."
            tables = verification_tables(self.verification)
            yield tables["tasks"].pick("task|intact|ablated|points lost|chance")
            yield tables["members"]
        if self.overlap is not None:
            often = ", ".join(f"{name} {times}" for name, times in self.times_selected.items())
            yield (
                f"selected in {1 + len(self.repeats)} searches, each on other items: "
                f"{often or 'nothing'}; two selections overlap by {self.overlap:.2f} on average "
                "(Jaccard)"
            )
        tables = localization_tables(self)
        yield from (tables[name] for name in ("alternatives", "backups") if tables[name].rows)
        if self.additivity is not None:
            yield self.additivity.says
        if self.shared:
            yield f"set apart, as the others need them too: {joined_names(self.shared)}"
        notes = dict.fromkeys((*self.notes, *self.verification.notes))
        yield from (f"note: {note}" for note in notes)
        again = sum(one.rows for one in self.repeats) + sum(one.rows for one in self.alternatives)
        yield (
            f"{self.search.method}, seed {self.search.seed}: {self.cost.rows + again:,} "
            f"rows of search and {self.cost.verification_rows:,} on report items in "
            f"{self.cost.wall_s:.1f} s"
        )

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each component, in the order of the ranking."""
        return ranking_records(self, self.off_target_effects)


def command_in(folder: Path) -> str:
    """Returns the command line that a run's folder records; empty if it records none.

    Raises:
        BadInput: The record is damaged.
    """
    file = folder / "reproduce.json"
    if not file.is_file():
        return ""
    try:
        return msgspec.json.decode(read_text(file), type=RunFolderRecord).command
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"'{file}' cannot be read ({error}): restore it, or remove it, and the report is "
            "written without the command"
        ) from error


def ranking_records(
    result: Localization | Refit, off_target_effects: dict[str, float]
) -> list[dict[str, Any]]:
    """Returns a line for each component of a ranking: its statistics and whether it is selected."""
    lines = []
    for line in tables_of("ranking", plain(result.ranking))["ranking"]:
        name = line.pop("name")
        record = {"component": name, **line, "selected": name in result.selected}
        if off_target_effects:
            record["off_target_effect"] = off_target_effects.get(name)
        lines.append(record)
    return lines


class Refit(Result, file="refit.json", page="refit.html", verb="broca refit"):
    """The ranking of another recovery on a run's rows.

    Attributes:
        task: The task that the run localized.
        method: The method that chose the rows.
        recovery: The recovery of this ranking.
        response: Response in which effects are measured.
        rows: Number of rows of the task that were used.
        masks: Number of their distinct masks, without the intact mask.
        ranking: All components, the most harmful ablation first.
        selected: Names of the selected components, at most k.
        reason: Why nothing was selected; empty otherwise.
        additivity: How well effects add up; None with few masks.
        interactions: Interactions that matter; None if they were not requested.
        notes: Notes for the reader.
    """

    kind: Literal["refit"] = "refit"
    task: str
    method: str
    recovery: str
    response: str
    rows: int
    masks: int
    ranking: tuple[RankedComponent, ...]
    selected: tuple[str, ...]
    reason: str
    additivity: AdditivityInfo | None
    interactions: InteractionInfo | None = None
    notes: tuple[str, ...] = ()

    def records(self) -> list[dict[str, Any]]:
        """Returns a line for each component, in the order of the ranking."""
        return ranking_records(self, {})

    def terminal(self) -> Iterator[str | Table]:
        """Yields the selection, and the first components of the ranking."""
        yield f"{self.task}: {joined_names(self.selected) or f'nothing selected: {self.reason}'}"
        yield f"{self.recovery} on {self.masks:,} masks of {self.method}, {self.rows:,} rows"
        yield ranking_table(self).pick(most=max(_RANKED_SHOWN, len(self.selected)))
        if self.additivity is not None:
            yield self.additivity.says
        if self.interactions is not None:
            yield f"{self.interactions.says}."
            yield interaction_table(self).pick(most=_RANKED_SHOWN)
        yield from (f"note: {note}" for note in self.notes)

    def figures(self) -> tuple[Figure, ...]:
        """Returns its figure: the components."""
        return (component_grid(self),)

    def page(self) -> str:
        """Renders the ranking."""
        names = [line.name for line in self.ranking]
        return filled(
            "refit", refit=self, counted=counted(names), noun_one=noun(names, plural=False),
            grid_figure=component_grid(self), ranking=ranking_table(self),
            interactions=interaction_table(self),
        )  # fmt: skip
