"""Collects the measurements of models, and makes their comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from broca.comparisons.estimating import EffectEstimates, discoveries, estimate_effects, row_count
from broca.comparisons.judging import carries, scores
from broca.comparisons.measuring import Design, Measured, draw_design, measure
from broca.comparisons.subjects import ComparedSubject
from broca.engine import Ablation
from broca.errors import BadInput
from broca.measurement import Response
from broca.models import GatedModel
from broca.results.base import AblationInfo
from broca.results.comparison import (
    ComparedModel,
    ComparedSelection,
    Comparison,
    TaskDifferences,
    TaskEffects,
)
from broca.runs.references import Referenced
from broca.runs.run import Run
from broca.runs.task_sets import TaskSet


@dataclass
class Collection:
    """The measurements of models; the first model determines the rows.

    Attributes:
        labels: Labels of the models, in the order of measurement.
        components: Names of the components of the first model.
        models: Label and measurements of every model.
        selections: The sets that were ablated as a whole.
        design: The rows, drawn on the first model.
        response: Response of the rows.
        rows: Number of rows for each task.
        tasks: The tasks of the first model.
        notes: Notes for the reader.
    """

    labels: Sequence[str]
    components: tuple[str, ...] = ()
    models: list[tuple[str, Measured]] = field(default_factory=list)
    selections: tuple[ComparedSelection, ...] = ()
    design: Design | None = None
    response: Response = "accuracy"
    rows: int = 0
    tasks: TaskSet = field(default_factory=TaskSet)
    notes: list[str] = field(default_factory=list)

    def require_components(self, model: GatedModel, label: str) -> None:
        """Refuses a model of another architecture.

        Raises:
            BadInput: The components have other names.
        """
        names = model.components.names
        if self.components and names != self.components:
            raise BadInput(
                f"'{label}' has {len(names)} components from {names[0]} to {names[-1]}, and the "
                f"first model {len(self.components)} to {self.components[-1]}: only models of one "
                "architecture can be compared"
            )
        self.components = names

    def measure(
        self,
        run: Run,
        label: str,
        selections: tuple[ComparedSelection, ...],
        rows: int | None,
        seed: int,
        response: str | None,
    ) -> None:
        """Measures a model; the first model determines the rows.

        Raises:
            BadInput: The tasks have fewer items than those of the first model.
        """
        if self.design is None:
            self.rows = row_count(rows, len(self.components))
        run.stages.enter(f"scoring {label}")
        referenced = self._referenced(run, response)
        if self.design is None:
            self.response, self.selections = referenced.response, selections
            self.tasks = run.tasks
            run.stages.expect(len(self.labels) * self._expected(referenced.places))
            self.design = draw_design(
                run, rows=self.rows, seed=seed, response=self.response, places=referenced.places
            )
            self.notes += referenced.notes
        for name, positions in referenced.places.items():
            if self.design.items[name].max() >= len(positions):
                raise BadInput(
                    f"task '{name}' has {len(positions)} items for '{label}' and more for the "
                    "first model: only the same items can be compared; use `response` accuracy"
                )
        run.stages.enter(_stage(label))
        measured = measure(
            run, self.design, [selection.components for selection in selections],
            response=self.response, places=referenced.places,
        )  # fmt: skip
        run.finish()
        self.notes += [
            f"{label} is at chance on {name}: it can show no damage there"
            for name in measured.at_chance
        ]
        self.models.append((label, measured))

    def _expected(self, places: Mapping[str, NDArray[np.intp]]) -> int:
        """Returns the rows of a model: masks on the tasks' items, and selections on others."""
        searched = sum(len(positions) + self.rows for positions in places.values())
        reported = sum(len(positions) for positions in self.tasks.places["report"].values())
        return searched + (1 + len(self.selections)) * reported

    def _referenced(self, run: Run, response: str | None) -> Referenced:
        """Returns the response of rows; a model's own answers are not comparable between models.

        Raises:
            BadInput: The response needs the models' own answers.
        """
        answered = [name for name, task in run.tasks.benchmarks.items() if task.wants_own_answers]
        if answered and response not in (None, "accuracy"):
            raise BadInput(
                f"`response` {response} of '{answered[0]}' would compare each model with its own "
                "answers: use accuracy, or `reference` gold"
            )
        row_response = response or ("accuracy" if answered else "probability")
        return run.referenced(
            row_response,  # type: ignore[arg-type]  # checked by the options
            run.tasks.places["locate"],
            otherwise="all tasks are measured in their own metrics" if response is None else None,
        )

    def _differences(
        self, label: str, task: str, change: EffectEstimates, level: float
    ) -> TaskDifferences:
        """Returns the differences of a model from the first on a task."""
        low, high = change.intervals(level)
        p = change.p_values()
        q = discoveries(p)
        changed = sorted(np.flatnonzero(q <= level), key=lambda column: -abs(change.values[column]))
        return TaskDifferences(
            label, task, _plain(change.values), _plain(low), _plain(high), _plain(p), _plain(q),
            tuple(self.components[column] for column in changed),
        )  # fmt: skip

    def compared(
        self, subjects: Sequence[ComparedSubject], ablation: Ablation, *, level: float, seed: int
    ) -> Comparison:
        """Returns the comparison of all models with the first.

        Args:
            subjects: The models, in the order of measurement.
            ablation: How components were ablated.
            level: Level of intervals and tests, and the false discovery rate.
            seed: Seed of the resamples.
        """
        assert self.design is not None
        first_label, first = self.models[0]
        effects, differences = [], []
        for label, measured in self.models:
            for task, changes in measured.changes.items():
                items = self.design.items[task]
                estimates = estimate_effects(self.design.masks, changes, items)
                low, high = estimates.intervals(level)
                effects.append(
                    TaskEffects(label, task, _plain(estimates.values), _plain(low), _plain(high))
                )
                if label != first_label:
                    change = estimate_effects(
                        self.design.masks, changes - first.changes[task], items
                    )
                    differences.append(self._differences(label, task, change, level))
        infos = dict(self.models)
        return Comparison(
            models=tuple(
                ComparedModel(subject.label, infos[subject.label].info, subject.revision)
                for subject in subjects
            ),
            tasks=tuple(first.changes),
            components=self.components,
            ablation=AblationInfo(ablation.kind, ablation.scale),
            response=self.response,
            seed=seed,
            level=level,
            rows=self.rows,
            items={name: int(drawn.max()) + 1 for name, drawn in self.design.items.items()},
            report_items={
                name: len(places) for name, places in self.tasks.places["report"].items()
            },
            mask_size=self.design.size,
            effects=tuple(effects),
            differences=tuple(differences),
            selections=self.selections,
            scores=tuple(
                line
                for label, measured in self.models
                for line in scores(label, measured, self.selections, level=level, seed=seed)
            ),
            carries=carries(self.models, self.selections, level=level, seed=seed),
            notes=tuple(dict.fromkeys(self.notes)),
        )


def _plain(vector: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(value) for value in vector)


def _stage(label: str) -> str:
    """Returns the stage in which a model is measured under random masks."""
    return f"measuring {label} under random masks"
