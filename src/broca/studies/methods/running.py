"""Runs the cells of a comparison one after another, and writes each when it is finished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from broca import localize, searches
from broca.errors import BadInput
from broca.options import SearchOptions, TaskOptions
from broca.results import Localization, version_of_broca
from broca.runs import Report, Session, Step, claim_tasks, localization_steps, silent
from broca.studies.methods.cells import Cell, CellFolder, CellKey, budget_name
from broca.studies.methods.ground_truth import SingleEffects, planted_recall
from broca.tasks import Benchmark
from broca.verification import roles

EffectsByTask = Mapping[tuple[str, str], SingleEffects]
"""Effects of single ablations by task and response."""


@dataclass(frozen=True)
class Grid:
    """The cells to run: all methods with all budgets, on all tasks, with all seeds.

    Attributes:
        methods: Names of the methods.
        budgets: Rows for each measured task; None for the method's own budget.
        seeds: Seeds of the items and of the searches.
        k: Maximum number of components to select.
        items: Maximum number of items to search on.
        report_items: Maximum number of report items of the task, and of all others together.
        exhaustive: Maximum number of items on which every component is ablated alone; 0 for none.
        task_options: How the tasks are prompted and scored.
    """

    methods: tuple[str, ...]
    budgets: tuple[int | None, ...] = (None,)
    seeds: tuple[int, ...] = (0,)
    k: int = 5
    items: int = 100
    report_items: int = 300
    exhaustive: int = 0
    task_options: TaskOptions = field(default_factory=TaskOptions)

    def __post_init__(self) -> None:
        for method in self.methods:
            searches.require_method(method)

    def keys(
        self, fingerprint: str, tasks: Sequence[str], benchmarks: Mapping[str, Benchmark]
    ) -> Iterator[CellKey]:
        """Yields the cells, seed by seed, so that early cells cover all methods.

        Args:
            fingerprint: Fingerprint of the model's weights.
            tasks: The tasks to localize.
            benchmarks: The tasks to localize and all other tasks, by name.
        """
        options = self.task_options.to_dict()
        for seed, task, method, budget in product(self.seeds, tasks, self.methods, self.budgets):
            yield CellKey(
                fingerprint=fingerprint,
                task=task,
                others=roles(task, benchmarks)[1],
                items=self.items,
                report_items=self.report_items,
                exhaustive=self.exhaustive,
                method=method,
                budget=budget,
                seed=seed,
                k=self.k,
                task_options=options,
            )

    def includes(self, key: CellKey) -> bool:
        """Whether a cell has the settings of this grid, on any model."""
        return all(
            getattr(key, name) == getattr(self, name)
            for name in ("k", "items", "report_items", "exhaustive")
        ) and key.task_options == self.task_options.to_dict()  # fmt: skip


@dataclass(frozen=True)
class CellSetup:
    """The common parts of the cells of a model.

    Attributes:
        session: The session of the model.
        benchmarks: All tasks by name.
        effects: Effects of single ablations, by task and response.
    """

    session: Session
    benchmarks: Mapping[str, Benchmark]
    effects: EffectsByTask

    def localize(self, key: CellKey, report: Report) -> Localization:
        """Runs the localization of a cell."""
        return localize(
            self.session.model,
            key.task,
            others=list(key.others),
            report_items=key.report_items,
            seed=key.seed,
            verify=False,
            search_options=_search_options(key),
            run_options=self.session.options,
            on_progress=report,
        )

    def rows(self, key: CellKey) -> int:
        """Returns the expected number of rows of a cell; 0 if its method refuses it."""
        tasks = claim_tasks(
            key.task,
            {name: self.benchmarks[name] for name in (key.task, *key.others)},
            items=key.items,
            seed=key.seed,
            report_items=key.report_items,
        )
        try:
            steps = localization_steps(
                self.session.model, tasks, key.method, _search_options(key), verify=False,
                interactions=0,
            )  # fmt: skip
        except BadInput:
            return 0
        return sum(step.rows for step in steps)


def _search_options(key: CellKey) -> SearchOptions:
    tasks = 1 + len(key.others) if searches.METHODS[key.method].measures_others else 1
    return SearchOptions(
        method=key.method,
        rows=None if key.budget is None else key.budget * tasks,
        k=key.k,
        items=key.items,
    )


def missing_cells(
    setup: CellSetup, keys: Sequence[CellKey], cells: CellFolder[Cell]
) -> dict[str, CellKey]:
    """Returns the missing cells of a folder, by the stage in which each is run."""
    missing = [key for key in keys if key not in cells]
    return {
        f"{setup.session.model.name}, cell {number:,} of {len(missing):,}: {key.method} on "
        f"{key.task}, budget {budget_name(key.budget)}, seed {key.seed}": key
        for number, key in enumerate(missing, start=1)
    }


def cell_steps(setup: CellSetup, missing: Mapping[str, CellKey]) -> list[Step]:
    """Returns the steps of some cells.

    The rows of a method are counted once for each budget; finished cells then correct the
    expectation for the others.
    """
    rows: dict[str, int] = {}
    steps = []
    for stage, key in missing.items():
        kind = f"{key.method} {budget_name(key.budget)} {key.fingerprint}"
        if kind not in rows:
            rows[kind] = setup.rows(key)
        steps.append(Step(stage, rows[kind], kind, verb=True))
    return steps


def run_cells(setup: CellSetup, keys: Sequence[CellKey], cells: CellFolder[Cell]) -> int:
    """Runs the missing cells of the folder; returns how many.

    Args:
        setup: The common parts; its stages receive the current cell and its progress.
        keys: The cells.
        cells: Folder in which each is written when it is finished.

    Raises:
        BrocaError: The folder cannot be written, or rows cannot be measured.
    """
    missing = missing_cells(setup, keys, cells)
    for stage, key in missing.items():
        report = setup.session.stages.enter_verb(stage)
        cells.add(run_cell(setup, key, on_progress=report))
    return len(missing)


def run_cell(setup: CellSetup, key: CellKey, *, on_progress: Report = silent) -> Cell:
    """Runs a search and scores its selection on the report items.

    If a method refuses the budget or the task, the cell contains the refusal.
    """
    capability = setup.benchmarks[key.task].capability
    cell = Cell(key, setup.session.model.name, capability, broca=version_of_broca())
    try:
        result = setup.localize(key, on_progress)
    except BadInput as error:
        return replace(cell, refused=str(error))
    baseline = result.baseline[key.task]
    planted = planted_recall(cell.model, cell.capability, result.selected, baseline)
    recall, false = planted or (None, None)
    alone = setup.effects.get((key.task, "accuracy"))
    compared = setup.effects.get((key.task, result.search.response))
    held, intervals = compared.held(result) if compared else (0, 0)
    return replace(
        cell,
        selected=result.selected,
        reason=result.reason,
        baseline=baseline,
        drop=result.verification.drop,
        off_target=result.verification.off_target_drop or 0.0,
        rows=result.cost.rows,
        seconds=result.cost.wall_s,
        recall=recall,
        false=false,
        top=alone.recall(result.selected, key.k) if alone else None,
        intervals=intervals,
        held=held,
    )


def parse_methods(names: str | Sequence[str]) -> tuple[str, ...]:
    """Reads names of methods; `all` stands for all methods.

    Raises:
        BadInput: No method is named.
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
        raise BadInput("`methods` names no method: give all, or names such as focus,greedy")
    return methods
