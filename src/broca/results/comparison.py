"""What a comparison of models or runs found: `comparison.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from broca.results.base import AblationInfo, Interval, ModelInfo, Result, listed

Carried = Literal["yes", "in part", "no", "undecided"]
"""Whether a selection is what another model, or another task, needs too."""


@dataclass(frozen=True)
class ComparedModel:
    """One of the models.

    Attributes:
        label: What it is called here.
        model: The model.
        revision: Its revision on the hub, where one was given.
    """

    label: str
    model: ModelInfo
    revision: str | None = None


@dataclass(frozen=True)
class ComparedSelection:
    """Components that a run, an atlas or the caller selected.

    Attributes:
        label: What they are called here.
        model: Label of the model that they were found in; None where the caller named them.
        task: The task that they were found on; None where the caller named them.
        components: Their names.
    """

    label: str
    model: str | None
    task: str | None
    components: tuple[str, ...]


@dataclass(frozen=True)
class SelectionScore:
    """A model's score on the report items of a task, with a selection ablated or intact.

    Attributes:
        model: Label of the model.
        task: The task.
        selection: Label of the selection; None for the intact model.
        score: Its score.
        drop: What it lost against the intact model; None for that itself.
    """

    model: str
    task: str
    selection: str | None
    score: float
    drop: Interval | None = None


@dataclass(frozen=True)
class Carry:
    """Whether a task of a model needs what another run selected.

    Attributes:
        selection: Label of the selection.
        model: Label of the model that it was ablated in.
        task: The task that was measured.
        drop: What the task lost.
        own: Label of the selection that was found on this model and task; None without one.
        share: That drop as a share of the drop without the own selection; None without one.
        p: Two-sided p-value of no drop, Holm-corrected over all of these lines.
        carried: The answer; docs/compare.md has the rule.
    """

    selection: str
    model: str
    task: str
    drop: Interval
    own: str | None
    share: Interval | None
    p: float
    carried: Carried


@dataclass(frozen=True)
class TaskEffects:
    """Effect of every component on a task of one model, in the order of the components.

    Attributes:
        model: Label of the model.
        task: The task.
        effects: Mean change of the response when the component is ablated beside random others.
        low: Lower ends of the 95 % intervals.
        high: Upper ends.
    """

    model: str
    task: str
    effects: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class TaskDifferences:
    """How effects differ between a model and the first one, in the order of the components.

    Attributes:
        model: Label of the model.
        task: The task.
        differences: Its effects minus those of the first model, on the same masks and items.
        low: Lower ends of the 95 % intervals.
        high: Upper ends.
        p: Two-sided p-values of no difference.
        q: The same, corrected over the components (Benjamini and Hochberg).
        changed: Names of the components with q at most the level, largest difference first.
    """

    model: str
    task: str
    differences: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Result, file="comparison.json", page="comparison.html", verb="broca compare"):
    """What differs between models of one architecture, measured on the same masks and items.

    Attributes:
        models: The models; differences are against the first.
        tasks: The tasks that all were measured on.
        components: Names of the components.
        ablation: What became of ablated components.
        response: What effects are measured in.
        seed: Seed of masks, items and resampling.
        level: Level of tests; rate of false discoveries among changed components.
        rows: Rows with a random mask that each model was measured on, for each task.
        items: Items of each task that they are of.
        report_items: Items of each task that scores are of.
        mask_size: Components that a random mask ablates, about.
        effects: Effects, model by model and task by task.
        differences: Differences from the first model.
        selections: What was ablated as a whole.
        scores: Scores, intact and without each selection.
        carries: Whether tasks need what others selected.
        notes: What the reader should know.
    """

    kind: Literal["comparison"] = "comparison"
    models: tuple[ComparedModel, ...]
    tasks: tuple[str, ...]
    components: tuple[str, ...]
    ablation: AblationInfo
    response: str
    seed: int
    level: float
    rows: int
    items: dict[str, int]
    report_items: dict[str, int]
    mask_size: int
    effects: tuple[TaskEffects, ...]
    differences: tuple[TaskDifferences, ...]
    selections: tuple[ComparedSelection, ...] = ()
    scores: tuple[SelectionScore, ...] = ()
    carries: tuple[Carry, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def selected(self) -> tuple[str, ...]:
        """All components of all selections, each once."""
        names = (name for selection in self.selections for name in selection.components)
        return tuple(dict.fromkeys(names))

    def effects_of(self, model: str, task: str) -> TaskEffects | None:
        """The effects of one model on one task; None where they were not measured."""
        pairs = {(line.model, line.task): line for line in self.effects}
        return pairs.get((model, task))

    def curves(self) -> dict[tuple[str, str], tuple[Interval, ...]]:
        """The effect of each selected component over the models, by task and component."""
        place = {name: column for column, name in enumerate(self.components)}
        curves: dict[tuple[str, str], tuple[Interval, ...]] = {}
        for task in self.tasks:
            lines = [line for line in self.effects if line.task == task]
            for name in self.selected:
                column = place[name]
                curves[task, name] = tuple(
                    Interval(line.effects[column], line.low[column], line.high[column])
                    for line in lines
                )
        return curves

    def summary(self) -> tuple[str, ...]:
        """What changed, and what is carried."""
        lines = [
            f"{len(line.changed)} of {len(self.components)} components changed on {line.task} from "
            f"{self.models[0].label} to {line.model}"
            + (f": {listed(line.changed)}" if line.changed else "")
            for line in self.differences[:2]
        ]
        words = {"yes": "carry", "in part": "carry in part", "no": "do not carry"}
        lines += [
            f"{line.selection} {words.get(line.carried, 'may or may not carry')} {line.task} in "
            f"{line.model} (drop {100 * line.drop.value:.1f} points)"
            for line in self.carries[:2]
        ]
        lines.append(
            f"{len(self.models)} models, {len(self.tasks)} task{'s' * (len(self.tasks) != 1)}, "
            f"{self.rows:,} rows for each, "
            f"seed {self.seed}"
        )
        return tuple(lines)

    def records(self) -> list[dict[str, Any]]:
        """A line for each component, model and task: effect, and difference from the first."""
        lines = []
        changes = {(line.model, line.task): line for line in self.differences}
        for line in self.effects:
            change = changes.get((line.model, line.task))
            for column, name in enumerate(self.components):
                record: dict[str, Any] = {
                    "component": name, "model": line.model, "task": line.task,
                    "effect": line.effects[column], "low": line.low[column],
                    "high": line.high[column],
                }  # fmt: skip
                of_change = ("difference", "difference_low", "difference_high", "p", "q", "changed")
                record |= dict.fromkeys(of_change)
                if change is not None:
                    record |= {
                        "difference": change.differences[column],
                        "difference_low": change.low[column],
                        "difference_high": change.high[column],
                        "p": change.p[column],
                        "q": change.q[column],
                        "changed": name in change.changed,
                    }
                lines.append(record)
        return lines
