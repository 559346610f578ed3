"""Collects the measurements of models, and makes their comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import stats

from broca.comparisons import measurements
from broca.comparisons.subjects import ComparedSubject
from broca.engine import Ablation
from broca.errors import BadInput
from broca.measurement import Response
from broca.results.base import AblationInfo, Interval
from broca.results.comparison import (
    Carried,
    Carry,
    ComparedModel,
    ComparedSelection,
    Comparison,
    SelectionScore,
    TaskDifferences,
    TaskEffects,
)
from broca.runs.run import Run
from broca.verification import Evidence, Scope, statistics

HALF = 0.5
"""Minimum drop without another selection, as a share of the drop without the own selection, for
which the task needs it."""


@dataclass
class Collection:
    """The measurements of models; the first model determines the rows.

    Attributes:
        subjects: The models, in the order of measurement.
        selections: The sets that are ablated as a whole.
        rows: Number of rows for each task; None for the default.
        response: Response of the rows; None for the default.
        seed: Seed of all random draws.
        components: Names of the components of the first model.
        design: The rows, drawn on the first model.
        asked: Subtask and number of the items of its rows by task.
        models: Measurements of every model by label.
        notes: Notes for the reader.
    """

    subjects: Sequence[ComparedSubject]
    selections: tuple[ComparedSelection, ...]
    rows: int | None = None
    response: Response | None = None
    seed: int = 0
    components: tuple[str, ...] = ()
    design: measurements.Design | None = None
    asked: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    models: dict[str, measurements.Measured] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def require_components(self, names: tuple[str, ...], label: str) -> None:
        """Refuses a model whose components have other names than those of the first or of a result.

        Raises:
            BadInput: They have.
        """
        for chosen in self.selections:
            if chosen.model and not set(names).issuperset(chosen.components):
                raise BadInput(
                    f"{chosen.components[0]} of '{chosen.label}' is none of the {len(names)} "
                    f"components to {names[-1]}: only results on the same `components` compare"
                )
        if names != (self.components or names):
            raise BadInput(
                f"'{label}' has {len(names)} components to {names[-1]}, and the first model "
                f"{len(self.components)} to {self.components[-1]}: only models of one architecture "
                "can be compared"
            )
        self.components = names

    def measure(self, run: Run, label: str) -> None:
        """Measures a model; the first model determines the rows.

        A model's own answers are not comparable between models.

        Raises:
            BadInput: The tasks have fewer items than those of the first model, or the response
                needs the models' own answers.
        """
        rows = measurements.row_count(self.rows, len(self.components))
        run.stages.enter(f"scoring {label}")
        answered = [name for name, task in run.tasks.benchmarks.items() if task.wants_own_answers]
        if answered and self.response not in (None, "accuracy"):
            raise BadInput(
                f"`response` {self.response} of '{answered[0]}' would compare each model with its "
                "own answers: use accuracy, or `reference` gold"
            )
        referenced = run.referenced(
            self.response or ("accuracy" if answered else "probability"),
            run.tasks.places["locate"],
            otherwise=None if self.response else "all tasks are measured in their own metrics",
        )
        places = referenced.places
        if self.design is None:
            reported = sum(len(positions) for positions in run.tasks.places["report"].values())
            searched = sum(len(positions) + rows for positions in places.values())
            of_model = searched + (1 + len(self.selections)) * reported
            run.stages.expect(len(self.subjects) * of_model)
            self.design = measurements.draw_design(
                run, rows=rows, seed=self.seed, response=referenced.response, places=places
            )
            self.notes += referenced.notes
        for name, positions in places.items():
            asked = [(item.task, item.number) for _, item in (run.bank[at] for at in positions)]
            if asked != self.asked.setdefault(name, asked):
                raise BadInput(
                    f"task '{name}' has {len(asked)} items for '{label}', and others for the first "
                    "model: only the same items can be compared; use `response` accuracy"
                )
        run.stages.enter(f"measuring {label} under random masks")
        selected = [selection.components for selection in self.selections]
        measured = measurements.measure(run, self.design, selected, places=places)
        run.finish()
        self.notes += [
            f"{label} does no better than guessing on {name}, which can lose nothing there"
            for name in measured.at_chance
        ]
        self.models[label] = measured

    def compared(self, ablation: Ablation, *, level: float) -> Comparison:
        """Returns the comparison of all models with the first.

        Args:
            ablation: How components were ablated.
            level: Level of intervals and tests, and the false discovery rate.
        """
        assert self.design is not None
        design, first = self.design, self.models[self.subjects[0].label]
        effects, differences = [], []
        for label, measured in self.models.items():
            for task, changes in measured.changes.items():
                items = design.items[task]
                estimates = measurements.estimate_effects(design.masks, changes, items)
                effects.append(TaskEffects(label, task, *estimates.with_ends(level)))
                same = np.array_equal(changes, first.changes[task])  # not with another tokenizer
                if same and measured.info.fingerprint == first.info.fingerprint:
                    continue
                change = measurements.estimate_effects(
                    design.masks, changes - first.changes[task], items
                )
                p = change.p_values()
                q = stats.false_discovery_control(p, method="bh")  # Benjamini and Hochberg, 1995
                changed = np.flatnonzero(q <= level)
                changed = changed[np.argsort(-np.abs(change.values[changed]), kind="stable")]
                names = tuple(self.components[column] for column in changed)
                p_values, q_values = tuple(p.tolist()), tuple(q.tolist())
                values, low, high = change.with_ends(level)
                differences.append(
                    TaskDifferences(label, task, values, low, high, p_values, q_values, names)
                )
        return Comparison(
            models=tuple(
                ComparedModel(subject.label, self.models[subject.label].info, subject.revision)
                for subject in self.subjects
            ),
            tasks=tuple(first.changes), components=self.components,
            ablation=AblationInfo(ablation.kind, ablation.scale),
            response=design.response, seed=self.seed, level=level, rows=len(design.masks),
            items={name: len(np.unique(drawn)) for name, drawn in design.items.items()},
            report_items={name: len(places) for name, places in first.trial.places.items()},
            mask_size=design.size, effects=tuple(effects), differences=tuple(differences),
            selections=self.selections, scores=self.scores(level), carries=self.carries(level),
            notes=tuple(dict.fromkeys(self.notes)),
        )  # fmt: skip

    def _evidence(self, measured: measurements.Measured, level: float) -> Evidence:
        """Returns the evidence of a model on its report items, without each selection."""
        return Evidence(measured.trial, Scope(level=level, seed=self.seed), measured.reported)

    def scores(self, level: float) -> tuple[SelectionScore, ...]:
        """Returns the models' scores on the report items, intact and without each selection."""
        lines = []
        for label, measured in self.models.items():
            found = self._evidence(measured, level)
            for task, values in measured.reported.items():
                intact, *without = (measured.trial.score(task, row) for row in values)
                lines.append(SelectionScore(label, task, None, intact))
                for row, score in enumerate(without, start=1):
                    selection, drop = self.selections[row - 1], found.drop(task, row)
                    lines.append(SelectionScore(label, task, selection.label, score, drop))
        return tuple(lines)

    def carries(self, level: float) -> tuple[Carry, ...]:
        """Tests whether tasks and models need the selections of others.

        The selection of a task in a model is tested on the same task in every other model, and on
        the tasks that other runs localized. P-values are Holm-corrected over all tests.
        """
        lines: list[Carry] = []
        rows = list(enumerate(self.selections, start=1))
        weights: dict[Any, str] = {name: one.info.fingerprint for name, one in self.models.items()}
        for label, measured in self.models.items():
            evidence = self._evidence(measured, level)
            for task, values in measured.reported.items():
                of_both = (weights[label], task)
                found = (row for row, one in rows if (weights.get(one.model), one.task) == of_both)
                own = next(found, None)
                aggregate = measured.trial.aggregation(task, values[0])
                for row, selection in rows:
                    if row == own or (own is None and selection.task not in (None, task)):
                        continue
                    share = None
                    if own is not None:
                        three = values[[0, row, own]]
                        share = drop_share(three, aggregate, level=level, seed=self.seed)
                    drop, _, p = evidence.compared(task, row)
                    name = None if own is None else self.selections[own - 1].label
                    lines.append(
                        Carry(selection.label, label, task, drop, name, share, p, "undecided")
                    )
        adjusted = statistics.holm([line.p for line in lines])
        return tuple(
            replace(line, p=p, carried=_answer(line, p, level))
            for line, p in zip(lines, adjusted, strict=True)
        )


def drop_share(
    scores: statistics.Values, aggregate: statistics.Aggregate | None, *, level: float, seed: int
) -> Interval | None:
    """Returns a drop as a share of another drop, resampled over the same items.

    Args:
        scores: Scores of the items, `(3, items)`: of the intact model, with one selection ablated,
            and with the other one.
        aggregate: The task's aggregation if it is not the mean.
        level: Level of the interval.
        seed: Seed of the resamples.

    Returns:
        The share; None if the other drop is not significantly above zero.
    """
    before, *after = scores
    score = aggregate or (lambda values, _: float(values.mean()))
    draws, own_draws = (
        statistics.bootstrap_drops(before, values, seed=seed, aggregate=score)
        for values in after  # the same seed draws the same items for both
    )
    every = np.arange(len(before))
    drop, own_drop = (score(before, every) - score(values, every) for values in after)
    own, *_ = statistics.paired_drop(before, after[1], level=level, seed=seed, aggregate=aggregate)
    if own.low <= 0:
        return None
    usable = own_draws > 0
    alike = np.array([np.ptp(before - values) == 0 for values in after])
    hidden = [
        statistics.unseen(before, values, level=level, aggregate=aggregate) for values in after
    ]
    bounds = np.array(hidden) / own_drop
    return statistics.interval_of(
        drop / own_drop, draws[usable] / own_draws[usable], level=level,
        reach=float(np.linalg.norm(bounds * alike)), least=0.0 if alike[0] else float(bounds[0]),
    )  # fmt: skip


def _answer(line: Carry, p: float, level: float) -> Carried:
    lost = p <= level and line.drop.value > 0
    if line.own_selection is None:
        return "yes" if lost else "undecided"
    if line.share is None:
        return "undecided"
    if lost:
        return "yes" if line.share.value >= HALF else "in part"
    return "no" if line.share.high < HALF else "undecided"
