"""Runs methods on simulated models with known strongest components or best sets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from comparison import CellFile
from hard_problems import HardProblem, hard_problem
from simulated_tasks import TASK_SCENARIOS, SimulatedTasks
from summaries import figure_text, known_mean, mean

from broca import searches
from broca.errors import BadInput
from broca.measurement import Measurement, Plan
from broca.runs.progress import Report, silent
from broca.searches import Problem

ITEMS = 100
"""Number of `locate` items, and of `confirm` items, of a planted model."""
NOISE = 0.1
"""Standard deviation of a row's noise."""
GRADIENT_NOISE = 6.0
"""Standard deviation of a row's slopes relative to the slopes: 3 to 15 for the heads that matter
most in the shipped models (experiments/LOG.md)."""
STRONGEST = 5

SIMULATED_COLUMNS = (
    "components", "scenario", "method", "rows", "recall", "top-5", "false", "specific", "best",
    "spent", "s", "problems",
)  # fmt: skip

_TAIL: dict[str, Any] = {"moderate": 40, "pairs": 30, "saturates": True}
PLANTED_SCENARIOS: Mapping[str, Mapping[str, Any]] = {
    "additive": {},
    "heavy": _TAIL,
    "binary": {**_TAIL, "binary": True},
    "redundant": {**_TAIL, "redundant": 2},
}
"""Properties of each scenario besides five strong components and noise. `heavy` has 40 moderate
components (a heavy tail), 30 interactions and saturation; `binary` has rows that are right or
wrong; in `redundant`, two of the strongest components have a backup."""
SCENARIOS = (*PLANTED_SCENARIOS, *TASK_SCENARIOS)
"""Names of all scenarios."""


@dataclass(frozen=True)
class SimulatedKey:
    """The settings of a simulated cell.

    Attributes:
        components: Number of components.
        scenario: Name of the scenario.
        method: Name of the method.
        rows: Maximum number of rows.
        seed: Seed of the problem and of the search.
        k: Maximum number of components to select.
    """

    components: int
    scenario: str
    method: str
    rows: int
    seed: int
    k: int


@dataclass(frozen=True)
class SimulatedCell:
    """A run of a method on a simulated model, or its refusal.

    Attributes:
        key: The settings.
        refused: Why the method did not run; empty if it ran.
        recall: Share of the five strongest components, or of the best set, that is selected.
        top: Share of them among the first five of the ranking.
        false: Number of other selected components, without backups of the strongest.
        rows: Number of measured rows.
        seconds: Time of the search.
        specific: Specific drop of the selection; None without other tasks.
        best: Specific drop of the best set; None without other tasks.
    """

    key: SimulatedKey
    refused: str = ""
    recall: float = 0.0
    top: float = 0.0
    false: int = 0
    rows: int = 0
    seconds: float = 0.0
    specific: float | None = None
    best: float | None = None

    @property
    def done(self) -> bool:
        """Whether the method ran."""
        return not self.refused


def simulated_cells(folder: Path) -> CellFile[SimulatedCell]:
    """Returns the simulated cells of an out folder."""
    return CellFile(folder / "simulations.jsonl", SimulatedCell)


@dataclass(frozen=True)
class SimulatedGrid:
    """The simulated cells to run.

    Attributes:
        methods: Names of the methods.
        components: Numbers of components.
        scenarios: Names of scenarios.
        rows: Maximum numbers of rows.
        seeds: Seeds of problems and searches.
        k: Maximum number of components to select.
    """

    methods: tuple[str, ...]
    components: tuple[int, ...]
    scenarios: tuple[str, ...]
    rows: tuple[int, ...]
    seeds: tuple[int, ...]
    k: int = STRONGEST

    def keys(self) -> list[SimulatedKey]:
        """Returns the cells, seed by seed."""
        return [
            SimulatedKey(components, scenario, method, rows, seed, self.k)
            for seed, components, scenario, method, rows in product(
                self.seeds, self.components, self.scenarios, self.methods, self.rows
            )
        ]


def run_simulations(
    grid: SimulatedGrid, cells: CellFile[SimulatedCell], *, on_progress: Report = silent
) -> int:
    """Runs the cells that the file lacks; returns how many."""
    done = cells.read()
    missing = [key for key in dict.fromkeys(grid.keys()) if key not in done]
    for number, key in enumerate(missing, start=1):
        on_progress(
            f"simulation {number:,} of {len(missing):,}: {key.method} on {key.components} "
            f"components ({key.scenario}), {key.rows:,} rows, seed {key.seed}",
            None,
        )
        cells.add(simulate(key))
    return len(missing)


def simulated_model(key: SimulatedKey) -> HardProblem:
    """Returns the simulated model of a cell with planted components."""
    return hard_problem(
        components=key.components,
        planted=STRONGEST,
        noise=NOISE,
        gradient_noise=GRADIENT_NOISE,
        seed=key.seed,
        **PLANTED_SCENARIOS[key.scenario],
    )


def simulate(key: SimulatedKey) -> SimulatedCell:
    """Runs a search on a simulated model.

    On planted models, methods that measure a probability on a real model measure the simulated
    response itself; if rows are right or wrong, they measure these and have no gradients. On
    simulated tasks every method measures the same response as on a real model.
    """
    if key.scenario in TASK_SCENARIOS:
        return _on_tasks(key)
    planted = simulated_model(key)
    continuous = not planted.binary
    problem = Problem(
        components=key.components,
        items=np.arange(ITEMS),
        k=key.k,
        rows=key.rows,
        seed=key.seed,
        confirm=np.arange(ITEMS, 2 * ITEMS),
        continuous=continuous,
        differentiable=continuous,
    )
    strongest, spares = set(planted.planted), set(planted.backups[planted.backups >= 0].tolist())
    return _searched(key, problem, planted.run, strongest, spares)[0]


def _on_tasks(key: SimulatedKey) -> SimulatedCell:
    """Runs a cell of a scenario with other tasks."""
    tasks = SimulatedTasks(
        TASK_SCENARIOS[key.scenario],
        key.components,
        key.seed,
        response=searches.METHODS[key.method].response,
    )
    best = tasks.best(key.k)
    problem = tasks.problem(key.rows, key.k)
    cell, selected = _searched(key, problem, tasks.run, set(best), set())
    if not cell.done:
        return cell
    return replace(cell, specific=tasks.specific(selected), best=tasks.specific(best))


def _searched(
    key: SimulatedKey,
    problem: Problem,
    run: Callable[[Plan], Measurement],
    strongest: set[int],
    spares: set[int],
) -> tuple[SimulatedCell, tuple[int, ...]]:
    """Runs a search; returns a cell without its drops, and the selection.

    Args:
        key: The settings.
        problem: The problem.
        run: Measures plans.
        strongest: The components that should be selected.
        spares: Backups of these components.
    """
    spent = 0

    def execute(plan: Plan) -> Measurement:
        nonlocal spent
        spent += plan.cost
        return run(plan)

    start = time.perf_counter()
    try:
        ranking = searches.run(searches.METHODS[key.method].search(problem), execute)
    except BadInput as error:
        return SimulatedCell(key, refused=str(error)), ()
    seconds = time.perf_counter() - start
    selected = set(ranking.selected)
    first = ranking.order[: len(strongest)]
    cell = SimulatedCell(
        key,
        recall=len(selected & strongest) / len(strongest),
        top=len(strongest.intersection(first)) / len(strongest),
        false=len(selected - strongest - spares),
        rows=spent,
        seconds=round(seconds, 3),
    )
    return cell, ranking.selected


@dataclass(frozen=True)
class SimulatedSummary:
    """A method with a number of rows: means over its problems.

    Attributes:
        components: Number of components.
        scenario: Name of the scenario.
        method: Name of the method.
        rows: Maximum number of rows.
        cells: Number of problems.
        refused: Number of problems that it refused.
        refusal: Message of the first refusal.
        recall: Mean share of the five strongest that is selected.
        top: Mean share of them among the first five of the ranking.
        false: Mean number of other selected components.
        spent: Mean number of measured rows.
        seconds: Mean time.
        specific: Mean specific drop of the selection; None without other tasks.
        best: Specific drop of the best set; None without other tasks.
    """

    components: int
    scenario: str
    method: str
    rows: int
    cells: int
    refused: int
    refusal: str
    recall: float
    top: float
    false: float
    spent: float
    seconds: float
    specific: float | None = None
    best: float | None = None


def summarize_simulations(cells: Sequence[SimulatedCell]) -> list[SimulatedSummary]:
    """Returns a summary for each size, scenario, method and number of rows."""
    groups: dict[tuple[int, str, str, int], list[SimulatedCell]] = {}
    for cell in cells:
        key = cell.key
        groups.setdefault((key.components, key.scenario, key.method, key.rows), []).append(cell)
    order = list(dict.fromkeys([*searches.METHODS, *(cell.key.method for cell in cells)]))
    summaries = []
    for group in sorted(groups, key=lambda names: (*names[:2], order.index(names[2]), names[3])):
        components, scenario, method, rows = group
        done = [cell for cell in groups[group] if cell.done]
        refusals = [cell.refused for cell in groups[group] if not cell.done]
        summaries.append(
            SimulatedSummary(
                components=components,
                scenario=scenario,
                method=method,
                rows=rows,
                cells=len(done),
                refused=len(refusals),
                refusal=refusals[0] if refusals else "",
                recall=mean([cell.recall for cell in done]),
                top=mean([cell.top for cell in done]),
                false=mean([cell.false for cell in done]),
                spent=mean([cell.rows for cell in done]),
                seconds=mean([cell.seconds for cell in done]),
                specific=known_mean([cell.specific for cell in done]),
                best=known_mean([cell.best for cell in done]),
            )
        )
    return summaries


def simulated_texts(line: SimulatedSummary) -> list[str]:
    """Returns a summary of simulations as text for each of `SIMULATED_COLUMNS`."""
    count = str(line.cells) + (f" (+{line.refused} refused)" if line.refused else "")
    return [
        f"{line.components:,}",
        line.scenario,
        line.method,
        f"{line.rows:,}",
        figure_text(line.recall) if line.cells else "refused",
        figure_text(line.top) if line.cells else "",
        figure_text(line.false),
        "" if line.specific is None else f"{line.specific:.3f}",
        "" if line.best is None else f"{line.best:.3f}",
        "" if isnan(line.spent) else f"{line.spent:,.0f}",
        "" if isnan(line.seconds) else f"{line.seconds:.1f}",
        count,
    ]
