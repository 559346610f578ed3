"""Runs the cells of a comparison, one after another, and keeps each as it is finished."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement, Plan, Response
from broca.results.base import version_of_broca
from broca.runs.workbench import Report
from broca.searches import Ranking
from broca.studies.methods.arena import Arena
from broca.studies.methods.cells import Cell, CellFile, CellKey, Interval, budget_name
from broca.verification.trial import Execute


@dataclass(frozen=True)
class Grid:
    """Which cells to run: all methods with all budgets, on all tasks, with all seeds.

    Attributes:
        methods: Names of the methods.
        budgets: Rows for each measured task; None for what a method takes by itself.
        seeds: Seeds of the items and of the searches.
        k: Most components to select.
        tasks: The tasks; None for all of the arena.
    """

    methods: tuple[str, ...]
    budgets: tuple[int | None, ...]
    seeds: tuple[int, ...]
    k: int = 5
    tasks: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for method in self.methods:
            searches.require_method(method)

    def keys(self, arena: Arena) -> Iterator[CellKey]:
        """The cells, seed by seed, so that what is finished early covers all methods."""
        tasks = arena.names if self.tasks is None else self.tasks
        for seed, task, method, budget in product(self.seeds, tasks, self.methods, self.budgets):
            yield CellKey(
                fingerprint=arena.model.fingerprint,
                task=task,
                others=arena.others(task),
                items=arena.items,
                report_items=arena.report_items,
                method=method,
                budget=budget,
                seed=seed,
                k=self.k,
            )


def run_grid(arena: Arena, grid: Grid, file: CellFile, *, on_progress: Report | None = None) -> int:
    """Runs the cells that are not in the file; returns how many.

    Args:
        arena: What they are run on.
        grid: Which cells.
        file: Where each is kept as soon as it is finished.
        on_progress: Receives which cell is run.

    Raises:
        BrocaError: The file cannot be written, or rows cannot be measured.
    """
    report: Report = on_progress or (lambda stage, progress: None)
    missing = [key for key in dict.fromkeys(grid.keys(arena)) if key not in file]
    for number, key in enumerate(missing, start=1):
        report(
            f"{arena.model.name}, cell {number:,} of {len(missing):,}: {key.method} on {key.task}, "
            f"budget {budget_name(key.budget)}, seed {key.seed}",
            None,
        )
        file.append(run_cell(arena, key))
    return len(missing)


def run_cell(arena: Arena, key: CellKey) -> Cell:
    """Runs one search and scores what it selects on the report items.

    A method that refuses the budget or the task makes a cell that says so.
    """
    capability = arena.benchmarks[key.task].capability
    version = version_of_broca()
    try:
        arena.require_ability(key.task, key.seed)
        problem, response = arena.problem(
            key.task, method=key.method, budget=key.budget, seed=key.seed, k=key.k
        )
        counted = _Counted(arena.executor(response).run, response)
        start = time.perf_counter()
        ranking = searches.run(searches.make_search(key.method, problem), counted)
        seconds = time.perf_counter() - start
    except BadInput as error:
        return Cell(key, arena.model.name, capability, refused=str(error), broca=version)
    proof = arena.prove(key.task, ranking.selected, seed=key.seed)
    names = arena.model.components.names
    return Cell(
        key=key,
        model=arena.model.name,
        capability=capability,
        selected=tuple(names[column] for column in ranking.selected),
        reason=ranking.reason,
        baseline=proof.before[key.task],
        drop=proof.drop,
        off_target=proof.off_target_drop or 0.0,
        specific=proof.specific_drop,
        rows=counted.rows,
        seconds=round(seconds, 3),
        response=counted.response,
        intervals=_intervals(ranking),
        broca=version,
    )


class _Counted:
    """Counts the rows of a search, and knows in what it measured last.

    That is what its intervals are compared in: a search that screens in one response and settles in
    the task's own metric gives intervals of both, and those that count most are of the latter.
    """

    def __init__(self, execute: Execute, response: Response) -> None:
        self._execute = execute
        self._own = response
        self.response = response
        self.rows = 0

    def __call__(self, plan: Plan) -> Measurement:
        self.rows += plan.cost
        self.response = plan.response or self._own
        return self._execute(plan)


def _intervals(ranking: Ranking) -> tuple[Interval | None, ...] | None:
    """Intervals to six digits, in the order of the columns."""
    if ranking.intervals is None or np.isnan(ranking.intervals).all():
        return None
    return tuple(
        None if np.isnan(low) or np.isnan(high) else (round(low, 6), round(high, 6))
        for low, high in ranking.intervals.tolist()
    )


def parse_methods(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names of methods, `all` for every one.

    Raises:
        BadInput: None is named.
        UnknownName: A method does not exist.
    """
    words = names.split(",") if isinstance(names, str) else list(names)
    words = [word.strip() for word in words if word.strip()]
    methods = tuple(
        dict.fromkeys(
            name for word in words for name in (searches.METHODS if word == "all" else (word,))
        )
    )
    for method in methods:
        searches.require_method(method)
    if not methods:
        raise BadInput("--methods names no method: give all, or names such as focus,greedy")
    return methods
