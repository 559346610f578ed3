"""The model, its tasks and their intact scores, laid out once for many searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from broca import searches
from broca.engine import Engine, EngineOptions
from broca.errors import BadInput, TaskUnusable
from broca.executors import LocalExecutor, with_references
from broca.measurement import Measurement, Plan, Response
from broca.models import GatedModel
from broca.runs.recording import shared_tokens
from broca.runs.task_sets import (
    Bank,
    Places,
    load_tasks,
    other_tasks,
    put,
    require_something_to_localize,
)
from broca.runs.workbench import Report
from broca.searches import OtherTask, Problem
from broca.tasks import Benchmark, Catalog, Split, TaskOptions
from broca.verification import Proof, prove, roles
from broca.verification.proof import scores_under
from broca.verification.trial import Execute


@dataclass(frozen=True, eq=False)
class Arena:
    """Everything that methods are compared on. A split by a seed is a choice of positions.

    What `broca.localize` would search and score with the same seed is what a search here does.

    Attributes:
        model: The model.
        names: The tasks that are localized.
        benchmarks: They and all tasks that should not suffer, by name.
        bank: Every item of every task, each with the task that scores it.
        places: For each task the positions of all its items in the bank.
        margins: For each task those of its items that have a margin; None where no item has.
        items: Most items to search on.
        report_items: Most report items of the task, and of all others together.
    """

    model: GatedModel
    names: tuple[str, ...]
    benchmarks: Mapping[str, Benchmark]
    bank: Bank
    places: Places
    margins: Mapping[str, frozenset[int] | None]
    items: int
    report_items: int
    _engine: Engine = field(repr=False)
    _executors: dict[Response, LocalExecutor] = field(repr=False, default_factory=dict)

    @classmethod
    def build(
        cls,
        model: GatedModel,
        *,
        tasks: Sequence[str] | str = "auto",
        others: Sequence[str] | str = "auto",
        include_path: str | Path | None = None,
        items: int = 100,
        report_items: int = 300,
        allow_code: bool = False,
        task_options: TaskOptions | None = None,
        engine_options: EngineOptions | None = None,
        on_progress: Report | None = None,
    ) -> Arena:
        """Loads the tasks and finds the right answers that margins need.

        Args:
            model: The model.
            tasks: The tasks to localize; `auto` for all that `localize` would take as others.
            others: The tasks that selections should leave alone, as for `localize`.
            include_path: A folder of lm-eval YAML tasks to add.
            items: Most items to search on.
            report_items: Most report items of the task, and of all others together.
            allow_code: Whether tasks may run what the model writes.
            task_options: How the tasks are asked.
            engine_options: Size of batches and sharing of work.
            on_progress: Receives what is going on.

        Raises:
            BrocaError: A task is unknown or cannot be used.
        """
        report: Report = on_progress or (lambda stage, progress: None)
        report("building the tasks", None)
        catalog = Catalog(include_path, allow_code=allow_code)
        names = other_tasks("", tasks, model.name, catalog)
        if not names:
            raise BadInput("--tasks names no task: give T1,T2, or --include-path with auto")
        every = tuple(dict.fromkeys((*names, *other_tasks("", others, model.name, catalog))))
        benchmarks = load_tasks(model, every, catalog, options=task_options)
        bank: Bank = []
        places: Places = {
            name: put(bank, one, range(len(one.items))) for name, one in benchmarks.items()
        }
        engine = Engine(model, engine_options)
        margins: dict[str, frozenset[int] | None] = {}
        for name in benchmarks:
            report(f"looking for right answers: {name}", None)
            try:
                found = with_references(
                    engine, bank, places[name].tolist(), components=len(model.components)
                )
            except TaskUnusable:
                margins[name] = None
            else:
                bank, margins[name] = found.bank, frozenset(found.positions)
        return cls(
            model, names, benchmarks, bank, places, margins, items, report_items, engine
        )  # fmt: skip

    @cached_property
    def _scored(self) -> Execute:
        return _Kept(self.executor("accuracy").run, len(self.bank))

    def executor(self, response: Response) -> LocalExecutor:
        """Measures plans in a response, unless they say another themselves."""
        if response not in self._executors:
            self._executors[response] = LocalExecutor(self._engine, self.bank, response=response)
        return self._executors[response]

    def others(self, task: str) -> tuple[str, ...]:
        """The tasks that a selection for `task` should leave alone: none of its capability."""
        return roles(task, self.benchmarks)[1]

    def split(self, task: str, seed: int) -> Split:
        """A task's items by seed, as positions in the bank."""
        cut = self.benchmarks[task].split(items=self.items, seed=seed)
        first = int(self.places[task][0])
        return Split(
            *(
                tuple(first + number for number in part)
                for part in (cut.locate, cut.confirm, cut.report)
            )
        )

    def problem(
        self, task: str, *, method: str, budget: int | None, seed: int, k: int
    ) -> tuple[Problem, Response]:
        """What a method has to solve, and what it measures, as `localize` would say it.

        Args:
            task: The task.
            method: Name of the method.
            budget: Rows for each measured task: a method that measures the others gets as many for
                each of them; None for what the method takes by itself.
            seed: Seed of the items and of the search.
            k: Most components to select.

        Raises:
            TaskUnusable: The method needs margins, and the task has none.
        """
        record = searches.require_method(method)
        measured = (task, *(self.others(task) if record.measures_others else ()))
        cuts = {name: self.split(name, seed) for name in measured}
        missing = [name for name in measured if self.margins[name] is None]
        if missing and record.needs_gradients:
            raise TaskUnusable(
                f"method '{method}' needs a margin, and no item of {', '.join(missing)} has one"
            )
        continuous = record.response != "accuracy" and not missing

        def located(name: str) -> NDArray[np.intp]:
            known = self.margins[name] if continuous else None
            kept = [one for one in cuts[name].locate if known is None or one in known]
            return np.array(kept, dtype=np.intp)

        items = located(task)
        problem = Problem(
            components=len(self.model.components),
            items=items,
            k=k,
            rows=None if budget is None else budget * len(measured),
            seed=seed,
            confirm=np.array(cuts[task].confirm, dtype=np.intp),
            others=tuple(
                OtherTask(name, located(name), np.array(cuts[name].confirm, dtype=np.intp))
                for name in measured[1:]
            ),
            continuous=continuous,
            differentiable=continuous and self.model.differentiable,
            **shared_tokens([self.bank[position][1] for position in items]),
        )
        return problem, record.response if continuous else "accuracy"

    def require_ability(self, task: str, seed: int) -> None:
        """Refuses a task that the intact model does not do.

        Raises:
            NothingToLocalize: It scores no better than guessing.
        """
        reported = self._reported(task, seed)
        intact = np.zeros(len(self.model.components), dtype=bool)
        one = {task: self.benchmarks[task]}
        score = scores_under(intact, one, reported, self._scored, self.bank)[task]
        require_something_to_localize(self.benchmarks[task], score, len(reported[task]))

    def prove(self, task: str, selected: Sequence[int], *, seed: int) -> Proof:
        """Scores a selection on the report items of the task and of the others.

        Args:
            task: The task.
            selected: Columns; without any nothing is lost.
            seed: Seed of the items.
        """
        shown = {name: self.benchmarks[name] for name in (task, *self.others(task))}
        reported = self._reported(task, seed)
        mask = np.zeros(len(self.model.components), dtype=bool)
        before = scores_under(mask, shown, reported, self._scored, self.bank)
        mask[list(selected)] = True
        after = scores_under(mask, shown, reported, self._scored, self.bank)
        return prove(task, shown, before, after)

    def _reported(self, task: str, seed: int) -> dict[str, list[int]]:
        others = self.others(task)
        share = max(5, self.report_items // max(1, len(others)))
        return {
            name: _evenly(self.split(name, seed).report, self.report_items if at == 0 else share)
            for at, name in enumerate((task, *others))
        }


class _Kept:
    """Responses under one mask at a time, none of them measured twice.

    Args:
        execute: Measures a plan; its answers depend on mask and item alone.
        items: Items of the bank.
    """

    def __init__(self, execute: Execute, items: int) -> None:
        self._execute = execute
        self._items = items
        self._known: dict[bytes, NDArray[np.float64]] = {}

    def __call__(self, plan: Plan) -> Measurement:
        """The responses to a plan of one mask."""
        (mask,) = plan.masks
        known = self._known.setdefault(mask.tobytes(), np.full(self._items, np.nan))
        missing = np.unique(plan.item_index[np.isnan(known[plan.item_index])])
        if len(missing):
            known[missing] = self._execute(Plan.crossed(plan.masks, missing)).responses
        return Measurement(plan, known[plan.item_index])


def _evenly(positions: Sequence[int], count: int) -> list[int]:
    """At most `count` positions, evenly from all."""
    if count >= len(positions):
        return list(positions)
    places = np.linspace(0, len(positions) - 1, count).round().astype(int)
    return [positions[place] for place in places.tolist()]
