"""A model, tasks and their items, laid out for measuring sets of components that are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.engine import (
    Ablation,
    Engine,
    EngineOptions,
    Progress,
    donor_activations,
    output_norms,
)
from broca.engine.ablation import AblationKind
from broca.executors import JournaledExecutor
from broca.models import GatedModel
from broca.runs.recording import Journaling, RowProgress
from broca.runs.task_sets import Bank, Part, Places, cut_note, lay_out, load_tasks
from broca.tasks import Benchmark, Catalog, Split, TaskOptions
from broca.verification import Examiner, Remembered, Scope, Trial, roles

Report = Callable[[str, Progress | None], None]
"""Receives what is going on: the stage, and how far it is where that is known."""


class Stage:
    """Tells progress with the stage of a run that it belongs to.

    Args:
        report: Receives both.
        name: The first stage.
    """

    def __init__(self, report: Report, name: str = "") -> None:
        self._report = report
        self._name = name

    def enter(self, name: str) -> None:
        """Another stage begins."""
        self._name = name

    def tell(self, progress: Progress) -> None:
        """How far the stage is."""
        self._report(self._name, progress)


@dataclass(frozen=True, eq=False)
class Workbench:
    """Everything that measures heads on tasks, built once.

    Attributes:
        model: The model.
        task: The claimed task.
        same_skill: Other tasks of its capability.
        others: The tasks that should not suffer.
        benchmarks: All tasks by name.
        splits: Their items, cut by seed.
        how: What becomes of ablated components.
    """

    model: GatedModel
    task: str
    same_skill: tuple[str, ...]
    others: tuple[str, ...]
    benchmarks: Mapping[str, Benchmark]
    splits: Mapping[str, Split]
    how: Ablation
    _keeping: Journaling = field(repr=False)
    _options: EngineOptions | None = field(repr=False)
    _report: Report = field(repr=False)
    _stage: Stage = field(repr=False)
    _executors: dict[str, JournaledExecutor] = field(repr=False, default_factory=dict)

    @classmethod
    def build(
        cls,
        model: GatedModel,
        task: str,
        *,
        same_skill: Sequence[str] = (),
        others: Sequence[str] = (),
        include_path: str | Path | None = None,
        items: int = 100,
        limit: int | None = None,
        how: Ablation | None = None,
        task_options: TaskOptions | None = None,
        allow_code: bool = False,
        options: EngineOptions | None = None,
        keeping: Journaling | None = None,
        on_progress: Report | None = None,
    ) -> Workbench:
        """Loads the tasks and cuts their items.

        Args:
            model: The model.
            task: The claimed task.
            same_skill: Tasks of its capability; those whose metadata say so are added.
            others: Other tasks; those of the task's capability are moved to `same_skill`.
            include_path: A folder of lm-eval YAML tasks to add.
            items: Most locate items, for donors and norms.
            limit: Most report items of each task; all by default.
            how: What becomes of ablated components; its seed also cuts the items.
            task_options: How the tasks are asked, as in `localize`.
            allow_code: Whether tasks may run what the model writes.
            options: Size of batches and sharing of work.
            keeping: Where rows are kept, and asked for before they are measured; in memory if None.
                The caller closes it.
            on_progress: Receives what is going on.

        Raises:
            BrocaError: A task is unknown or cannot be used.
        """
        how = how or Ablation()
        catalog = Catalog(include_path, allow_code=allow_code)
        benchmarks = load_tasks(
            model, (task, *same_skill, *others), catalog, task=task, options=task_options
        )
        same, rest = roles(task, benchmarks, same_skill)
        splits = {name: one.split(items=items, seed=how.seed) for name, one in benchmarks.items()}
        if limit is not None:
            splits = {
                name: Split(one.locate, one.confirm, one.report[:limit])
                for name, one in splits.items()
            }
        report: Report = on_progress or (lambda stage, progress: None)
        return cls(
            model, task, same, rest, benchmarks, splits, how, keeping or Journaling(), options,
            report, Stage(report),
        )  # fmt: skip

    @cached_property
    def _layout(self) -> tuple[Bank, dict[Part, Places]]:
        parts: dict[Part, tuple[str, ...]] = {
            "report": tuple(self.benchmarks), "locate": (self.task,),
        }  # fmt: skip
        return lay_out(self.benchmarks, self.splits, parts)

    @property
    def bank(self) -> Bank:
        """Every task's report items, then the task's locate items."""
        return self._layout[0]

    @property
    def places(self) -> Places:
        """For each task, the positions of its report items in the bank."""
        return self._layout[1]["report"]

    @property
    def _located(self) -> list[int]:
        located: list[int] = self._layout[1]["locate"][self.task].tolist()
        return located

    @cached_property
    def _prompts(self) -> list[tuple[int, ...]]:
        return [self.bank[position][1].requests[0].context for position in self._located]

    @cached_property
    def norms(self) -> NDArray[np.float64] | None:
        """Mean output norm of every component over the locate items."""
        return output_norms(self.model, self._prompts)

    @property
    def trial(self) -> Trial:
        """The tasks with their items."""
        items = [item for _, item in self.bank]
        return Trial(self.task, self.same_skill, self.others, self.benchmarks, self.places, items)

    @property
    def rows(self) -> int:
        """Rows measured so far."""
        return sum(one.rows for one in self._executors.values())

    def stage(self, text: str) -> None:
        """Says what is going on."""
        self._stage.enter(text)
        self._report(text, None)

    def executor(self, kind: AblationKind | None = None) -> JournaledExecutor:
        """Measures under one kind of ablation, the bench's own by default."""
        kind = kind or self.how.kind
        if kind not in self._executors:
            how = Ablation(kind, self.how.scale, self.how.seed)
            progress = RowProgress(self._stage.tell)
            recorder = self._keeping.begin(
                model=self.model,
                bank=self.bank,
                engine=Engine(
                    self.model,
                    self._options,
                    donors=donor_activations(self.model, self._prompts, how),
                    on_progress=progress.within,
                ),
                ablation=how,
                donors=self._located,
                settings={
                    "measures": self.task,
                    "others": [*self.same_skill, *self.others],
                    "ablation": [how.kind, how.scale],
                    "components": self.model.kinds,
                    "seed": how.seed,
                },
                progress=progress,
            )
            self._executors[kind] = recorder.local(self.bank, donors=self._located)
        return self._executors[kind]

    def examiner(self, scope: Scope, *, kinds: Sequence[AblationKind] = ()) -> Examiner:
        """An examiner of sets of components, which measures no row twice."""
        return Examiner(
            trial=self.trial,
            components=self.model.components,
            execute=Remembered(self.executor().run),
            answer=self.executor().answers,
            items=[item for _, item in self.bank],
            norms=self.norms,
            kinds={kind: Remembered(self.executor(kind).run) for kind in kinds},
            scope=scope,
        )

    def notes(self) -> tuple[str, ...]:
        """What the reader should know of the items."""
        return tuple(note for name, one in self.benchmarks.items() for note in cut_note(name, one))


def requested(names: str | Sequence[str]) -> list[Any]:
    """Names from a list, or from one string joined by commas."""
    if isinstance(names, str):
        names = names.split(",")
    return [name.strip() for name in names if name.strip()]
