"""Comparisons of methods on models: every search is a cell, a line of a file of cells."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

import broca
from broca import designs, searches
from broca.errors import BadInput, TaskUnusable
from broca.known_paths import SHIPPED_MODELS
from broca.measurement import Plan, Response
from broca.models import GatedModel
from broca.options import SourceOptions
from broca.runs.progress import Report, silent
from broca.runs.task_sets import load_tasks, other_tasks, whole_tasks
from broca.tasks import Benchmark
from broca.verification import roles

LEARNED = 0.5
"""Minimum intact score of a capability that a planted model has learned; below it, planted heads
matter little and are not a ground truth (the model's card)."""


@dataclass(frozen=True)
class CellKey:
    """The settings of a cell: two cells with the same key are the same search.

    Attributes:
        fingerprint: Fingerprint of the model's weights.
        task: The task that was localized.
        others: The tasks that the selection should not affect.
        items: Maximum number of items to search on.
        report_items: Maximum number of report items of the task, and of all others together.
        exhaustive: Maximum number of items on which every component was ablated alone; 0 for none.
        method: Name of the method.
        budget: Rows for each measured task; None for the method's own budget.
        seed: Seed of the items and of the search.
        k: Maximum number of components to select.
    """

    fingerprint: str
    task: str
    others: tuple[str, ...]
    items: int
    report_items: int
    exhaustive: int
    method: str
    budget: int | None
    seed: int
    k: int


@dataclass(frozen=True)
class Cell:
    """A finished search of a method, or its refusal.

    Attributes:
        key: The settings.
        model: Name of the model.
        capability: Capability that the task measures.
        refused: Why the method did not run; empty if it ran.
        selected: Names of the selected components.
        drop: Drop of the task on the report items; 0 if nothing was selected.
        off_target: Mean drop of the others; 0 if nothing was selected.
        rows: Number of rows of the search, all tasks together.
        seconds: Time from the built tasks to the scored selection.
        recall: Share of the planted heads that were selected; None if none are known.
        false: Number of selected heads that were not planted; None if no planted heads are known.
        top: Share selected of the k components with the largest single effects; None if these were
            not measured or none is harmful.
        intervals: Number of 90 % intervals that can be compared with effects of single ablations.
        held: Number of these intervals that contain the effect.
    """

    key: CellKey
    model: str
    capability: str
    refused: str = ""
    selected: tuple[str, ...] = ()
    drop: float = 0.0
    off_target: float = 0.0
    rows: int = 0
    seconds: float = 0.0
    recall: float | None = None
    false: int | None = None
    top: float | None = None
    intervals: int = 0
    held: int = 0

    @property
    def specific(self) -> float:
        """Specific drop of the selection."""
        return self.drop - self.off_target

    @property
    def done(self) -> bool:
        """Whether the method ran."""
        return not self.refused

    @property
    def abstained(self) -> bool:
        """Whether it ran and selected nothing."""
        return self.done and not self.selected


AnyCell = TypeVar("AnyCell")


class CellFile(Generic[AnyCell]):
    """Finished cells of a kind, a JSON line each; a later line of a key replaces an earlier one.

    Args:
        path: The file.
        kind: The class of the cells.
    """

    def __init__(self, path: Path, kind: type[AnyCell]) -> None:
        self._path, self._kind = path, kind

    def add(self, cell: AnyCell) -> None:
        """Appends a cell; one that a kill tears is left out when the file is read."""
        with self._path.open("ab") as file:
            file.write(b"\n" + msgspec.json.encode(cell))

    def read(self) -> dict[Any, AnyCell]:
        """Returns all cells by their key."""
        cells = {}
        for line in self._path.read_bytes().splitlines() if self._path.exists() else ():
            try:
                cell: Any = msgspec.json.decode(line, type=self._kind)
            except msgspec.MsgspecError:
                continue
            cells[cell.key] = cell
        return cells


def method_cells(folder: Path) -> CellFile[Cell]:
    """Returns the cells of methods in an out folder."""
    return CellFile(folder / "cells.jsonl", Cell)


@dataclass(frozen=True)
class Grid:
    """The cells to run: all methods with all budgets, on all tasks, with all seeds; see `CellKey`.

    Attributes:
        methods: Names of the methods.
        budgets: Rows for each measured task; None for the method's own budget.
        seeds: Seeds of the items and of the searches.
        tasks: The tasks to localize, as for `broca.localize`; `auto` for all shipped ones.
        others: The tasks that selections should not affect; those of a task's capability are
            neither searched nor scored.
        k: Maximum number of components to select.
        items: Maximum number of items to search on.
        report_items: Maximum number of report items of the task, and of all others together.
        exhaustive: Maximum number of items on which every component is ablated alone; 0 for none.
        include_path: A folder of tasks.
    """

    methods: Sequence[str]
    budgets: Sequence[int | None] = (None,)
    seeds: Sequence[int] = (0,)
    tasks: str | Sequence[str] = "auto"
    others: str | Sequence[str] = "auto"
    k: int = 5
    items: int = 100
    report_items: int = 300
    exhaustive: int = 0
    include_path: str | None = None

    def keys(
        self, model: GatedModel, names: Sequence[str], benchmarks: Mapping[str, Benchmark]
    ) -> Iterator[CellKey]:
        """Yields the cells, seed by seed, so that early cells cover all methods."""
        for seed, task, method, budget in product(self.seeds, names, self.methods, self.budgets):
            yield CellKey(
                model.fingerprint, task, roles(task, benchmarks)[1], self.items,
                self.report_items, self.exhaustive, method, budget, seed, self.k,
            )  # fmt: skip


def compare(
    model: str | GatedModel,
    grid: Grid,
    cells: CellFile[Cell],
    workspace: broca.Workspace,
    *,
    on_progress: Report = silent,
) -> int:
    """Runs the cells of a model that the file lacks; returns how many.

    A cell is a call of `broca.localize` without statistics. All cells share the workspace's
    journal; a method that refuses the budget or the task has a cell with its refusal.
    """
    gated = broca.load(model, device="cpu") if isinstance(model, str) else model
    catalog = workspace.catalog(SourceOptions(include_path=grid.include_path))
    names, controls = (
        other_tasks("", listed, gated, catalog) for listed in (grid.tasks, grid.others)
    )
    benchmarks = load_tasks(gated, (*names, *controls), catalog)
    done = cells.read()
    missing = [key for key in grid.keys(gated, names, benchmarks) if key not in done]
    alone = _single_effects(gated, names, benchmarks, grid, workspace, missing)
    for number, key in enumerate(missing, start=1):
        on_progress(
            f"{gated.name}, cell {number:,} of {len(missing):,}: {key.method} on {key.task}, "
            f"budget {budget_name(key.budget)}, seed {key.seed}",
            None,
        )
        cell = Cell(key, gated.name, benchmarks[key.task].capability)
        cells.add(_run_cell(gated, cell, alone, grid, workspace))
    return len(missing)


def _run_cell(
    model: GatedModel,
    cell: Cell,
    alone: Mapping[tuple[str, str], dict[str, float]],
    grid: Grid,
    workspace: broca.Workspace,
) -> Cell:
    """Returns a cell with what its search found, scored on the report items."""
    key = cell.key
    measured = 1 + len(key.others) if searches.METHODS[key.method].measures_others else 1
    try:
        result = broca.localize(
            model, task=key.task, others=list(key.others), report_items=key.report_items,
            seed=key.seed, verify=False, method=key.method, k=key.k, items=key.items,
            rows=None if key.budget is None else key.budget * measured,
            include_path=grid.include_path, journal=workspace,
        )  # fmt: skip
    except BadInput as error:
        return replace(cell, refused=str(error))
    effects = alone.get((key.task, result.search.response), {})
    intervals = [(line.ci, effects[line.name]) for line in result.ranking if effects and line.ci]
    planted = planted_recall(
        cell.model, cell.capability, result.selected, result.baseline[key.task]
    )
    recall, false = planted or (None, None)
    return replace(
        cell,
        selected=result.selected,
        drop=result.verification.drop,
        off_target=result.verification.off_target_drop or 0.0,
        rows=result.cost.rows,
        seconds=result.cost.wall_s,
        recall=recall,
        false=false,
        top=top_recall(alone.get((key.task, "accuracy"), {}), result.selected, key.k),
        intervals=len(intervals),
        # effects have six digits
        held=sum(round(low, 6) <= effect <= round(high, 6) for (low, high), effect in intervals),
    )


def _single_effects(
    model: GatedModel,
    names: Sequence[str],
    benchmarks: Mapping[str, Benchmark],
    grid: Grid,
    workspace: broca.Workspace,
    missing: Sequence[CellKey],
) -> dict[tuple[str, str], dict[str, float]]:
    """Measures the effect of ablating every component alone, by task and response, if requested."""
    if not grid.exhaustive or not missing:
        return {}
    run = broca.Run(model, whole_tasks(benchmarks), workspace)
    responses = {"accuracy", *(searches.METHODS[name].response for name in grid.methods)}
    effects = {}
    for task, response in product(names, sorted(responses)):
        try:
            effects[task, response] = single_effects(run, task, response, items=grid.exhaustive)
        except TaskUnusable:  # no item of the task has this response
            continue
    return effects


def single_effects(
    run: broca.Run, task: str, response: Response, *, items: int
) -> dict[str, float]:
    """Returns the change of the mean response of a task without each component, by name.

    Args:
        run: A run on all items of the task.
        task: The task.
        response: Response of the rows.
        items: Maximum number of items, drawn from all items with this response regardless of
            splits.

    Raises:
        TaskUnusable: No item of the task has this response.
    """
    places = run.tasks.places["report"][task]
    if response != "accuracy":
        places = run.referenced(response, {task: places}, otherwise=None).places[task]
    rng = np.random.default_rng([0xEC4A, zlib.crc32(task.encode())])
    drawn = np.sort(rng.permutation(places)[:items])
    count = len(run.model.components)
    masks = np.vstack([designs.intact(count), designs.singles(count)])
    means = run.measure(Plan.crossed(masks, drawn, response=response)).mask_means()
    effects = [round(float(effect), 6) for effect in means[1:] - means[0]]
    return dict(zip(run.model.components.names, effects, strict=True))


def top_recall(effects: Mapping[str, float], selected: Sequence[str], k: int) -> float | None:
    """Returns the share of the k most harmful components that are selected; None if none harms."""
    worst = {name for name in sorted(effects, key=effects.__getitem__)[:k] if effects[name] < 0}
    return len(worst & set(selected)) / len(worst) if worst else None


def planted_recall(
    model: str, capability: str, selected: Sequence[str], baseline: float
) -> tuple[float, int] | None:
    """Compares a selection with the planted set of its capability.

    Returns:
        The share of the planted heads that were selected, and the number of other selected heads;
        None if nothing is planted, or the model has not learned the task.
    """
    if model not in SHIPPED_MODELS:
        return None
    path = files("broca") / "reference_models" / model / "planted_heads.json"
    sets = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    planted = set(sets.get(capability, ()))
    if not planted or baseline < LEARNED:
        return None
    return len(planted & set(selected)) / len(planted), len(set(selected) - planted)


def budget_name(budget: int | None) -> str:
    """Returns the name of a budget in tables."""
    return "default" if budget is None else f"{budget:,}"


def parse_methods(text: str) -> tuple[str, ...]:
    """Reads names of methods joined by commas; `all` stands for all methods.

    Raises:
        UnknownName: A method does not exist.
    """
    methods = tuple(searches.METHODS) if text == "all" else tuple(text.split(","))
    for method in methods:
        searches.require_method(method)
    return methods
