"""`compare_methods`: runs every method on every task of some models, and summarizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from broca import searches
from broca.errors import BadInput
from broca.measurement import Response
from broca.models import GatedModel
from broca.options import MethodsRunOptions, SearchOptions, takes_options, without
from broca.results import check_out_folder
from broca.runs import (
    JOURNAL,
    Session,
    Stages,
    Step,
    load_tasks,
    open_session,
    open_workspace,
    other_tasks,
    whole_tasks,
)
from broca.studies.methods.cells import Cell, CellFolder, CellKey, method_cells
from broca.studies.methods.comparison_page import save_page
from broca.studies.methods.ground_truth import SingleEffects, single_effects
from broca.studies.methods.running import (
    CellSetup,
    EffectsByTask,
    Grid,
    cell_steps,
    missing_cells,
    parse_methods,
    run_cells,
)
from broca.studies.methods.summary import MethodSummary, summarize
from broca.tasks import Benchmark, Task

CANDIDATE = searches.DEFAULT_METHOD
"""The method with which the others are compared."""


@dataclass(frozen=True)
class MethodComparison:
    """The result of a comparison, over all cells of its folder with the same settings.

    Attributes:
        cells: The cells.
        summaries: A summary for each model, method and budget.
        ran: Number of cells that this call ran.
        page: The page.
        left_out: Number of cells of the folder with other settings or of other models.
    """

    cells: tuple[Cell, ...]
    summaries: tuple[MethodSummary, ...]
    ran: int
    page: Path
    left_out: int


@takes_options
def compare_methods(
    models: str | GatedModel | Sequence[str | GatedModel],
    *,
    out: str | Path,
    methods: str | Sequence[str] = "all",
    tasks: str | Sequence[str | Task] = "auto",
    others: str | Sequence[str | Task] = "auto",
    budgets: Sequence[int | None] = (None,),
    seeds: Sequence[int] = (0,),
    report_items: int = 300,
    exhaustive: int = 300,
    candidate: str = CANDIDATE,
    again: str | Sequence[str] = (),
    search_options: Annotated[
        SearchOptions, without("method", "rows", "response", "options", "max_minutes")
    ],
    run_options: MethodsRunOptions,
) -> MethodComparison:
    """Runs every method with every budget and seed on every task, and summarizes.

    A cell is a call of `broca.localize` without statistics. All cells share a journal, and cells
    that the folder contains are not run again.

    Args:
        models: A model or several: shipped ones, local folders, hub ids, or what `broca.load`
            returned.
        out: Folder for the cells, `methods.html`, and the journal if no other is named.
        methods: Names, as a list or joined by commas, or `all`.
        tasks: The tasks to localize; `auto` for all shipped ones, or those of `include_path`.
        others: The tasks that selections should not affect, as for `localize`. Those of the task's
            capability are neither searched nor scored.
        budgets: Rows for each measured task; None for the method's own budget.
        seeds: Seeds of the items and of the searches.
        report_items: Maximum number of report items of the task, and of all others together.
        exhaustive: Number of items on which every component is ablated alone, for top-k recall and
            calibration; 0 for neither.
        candidate: The method with which the others are compared.
        again: Methods of this call whose finished cells are run again.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    listed_models = [models] if isinstance(models, str | GatedModel) else list(models)
    if report_items < 1:
        raise BadInput(f"`report_items` must be at least 1, not {report_items}")
    if exhaustive < 0:
        raise BadInput(f"`exhaustive` must be 0 or more, not {exhaustive}")
    if not listed_models or not seeds:
        raise BadInput("nothing to compare: give at least one model and one seed")
    grid = Grid(
        parse_methods(methods), tuple(budgets), tuple(seeds), search_options.k,
        search_options.items, report_items, exhaustive, run_options.task_options,
    )  # fmt: skip
    repeated = parse_methods(again) if again else ()
    searches.require_method(candidate)
    if idle := [name for name in repeated if name not in grid.methods]:
        raise BadInput(f"`again` {','.join(idle)} is not in `methods`: name it there too")
    folder = check_out_folder(out)
    cells = method_cells(folder)
    cells.read()  # a foreign file is refused before anything is measured
    compared: dict[str, str] = {}
    ran = 0
    journal_options = run_options.journal_options
    journal_options = replace(journal_options, journal=journal_options.journal or folder / JOURNAL)
    stages = Stages(run_options.on_progress)
    with open_workspace(journal_options, run_options.executor_options) as space:
        for number, model in enumerate(listed_models):
            with open_session(
                model, run_options.within(space), stages, others=[tasks, others]
            ) as opened:
                compared[opened.model.fingerprint] = opened.model.name
                setup, names = _setup(opened, grid, tasks, others)
                keys = list(grid.keys(opened.model.fingerprint, names, setup.benchmarks))
                cells.remove([key for key in keys if key.method in repeated])
                steps = _steps(setup, names, grid, keys, cells)
                stages.expect(steps, instead_of=_later(number))
                if number == 0:
                    stages.expect(_later_steps(len(listed_models), steps))
                setup = replace(setup, effects=_effects(opened, names, setup.benchmarks, grid))
                ran += run_cells(setup, keys, cells)
    return concluded(folder, cells, grid, compared, candidate=candidate, ran=ran)


def concluded(
    folder: Path,
    cells: CellFolder[Cell],
    grid: Grid,
    fingerprints: Collection[str],
    *,
    candidate: str = CANDIDATE,
    ran: int = 0,
) -> MethodComparison:
    """Summarizes the cells of a folder, and writes its page, without measuring anything.

    Args:
        folder: The out folder.
        cells: Its cells.
        grid: The settings of the summarized cells, of any method, budget, seed and task.
        fingerprints: The models to summarize, in this order.
        candidate: The method with which the others are compared.
        ran: Number of cells that were just run, for the record.

    Raises:
        BadInput: A file of the folder holds something else, or the page cannot be written.
    """
    every = cells.read()
    order = list(fingerprints)
    methods = list(searches.METHODS)
    chosen = sorted(
        (
            cell
            for cell in every
            if cell.key.fingerprint in order
            and cell.key.method in methods
            and grid.includes(cell.key)
        ),
        key=lambda cell: (
            order.index(cell.key.fingerprint),
            methods.index(cell.key.method),
            cell.key.seed,
            cell.key.task,
        ),
    )
    summaries = tuple(summarize(chosen, candidate=candidate))
    page = save_page(summaries, folder)
    return MethodComparison(tuple(chosen), summaries, ran, page, len(every) - len(chosen))


def _setup(
    opened: Session,
    grid: Grid,
    tasks: str | Sequence[str | Task],
    others: str | Sequence[str | Task],
) -> tuple[CellSetup, tuple[str, ...]]:
    """Builds the tasks of a model; returns them with the names of the tasks to localize."""
    model = opened.model
    if grid.k > len(model.components):
        raise BadInput(
            f"`k` {grid.k} is more than the {len(model.components)} {model.kinds} of {model.name}"
        )
    opened.stages.enter("building the tasks")
    catalog = opened.catalog
    names, controls = (other_tasks("", listing, model, catalog) for listing in (tasks, others))
    if not names:
        raise BadInput("`tasks` names no task: give T1,T2, or `include_path` with auto")
    benchmarks = load_tasks(model, (*names, *controls), catalog, options=grid.task_options)
    return CellSetup(opened, benchmarks, {}), names


def _steps(
    setup: CellSetup,
    names: Sequence[str],
    grid: Grid,
    keys: Sequence[CellKey],
    cells: CellFolder[Cell],
) -> list[Step]:
    """Returns the steps of a model: every component alone, then the cells."""
    setup.session.stages.enter("counting rows")
    masks = 1 + len(setup.session.model.components)
    alone = [
        Step(
            _alone(task, response),
            masks * min(grid.exhaustive, len(setup.benchmarks[task].items)),
            f"alone {response}",
        )
        for task in names
        if grid.exhaustive
        for response in _responses(grid)
    ]
    return [*alone, *cell_steps(setup, missing_cells(setup, keys, cells))]


def _later_steps(models: int, steps: Sequence[Step]) -> list[Step]:
    """Returns the steps of models that are not loaded yet, with the rows of the first model."""
    rows = sum(step.rows for step in steps)
    return [Step(_later(number), rows, verb=True) for number in range(1, models)]


def _later(number: int) -> str:
    return f"model {number}" if number else ""


def _effects(
    opened: Session, names: Sequence[str], benchmarks: Mapping[str, Benchmark], grid: Grid
) -> EffectsByTask:
    """Measures the effects of single ablations by task and response, if they are requested."""
    run = opened.run(
        whole_tasks(benchmarks), settings={"study": "methods", "tasks": list(benchmarks)}
    )
    effects: dict[tuple[str, str], SingleEffects] = {}
    for task in names if grid.exhaustive else ():
        for response in _responses(grid):
            opened.stages.enter(_alone(task, response))
            measured = single_effects(run, task, response, items=grid.exhaustive)
            if measured is not None:
                effects[task, response] = measured
    return effects


def _alone(task: str, response: Response) -> str:
    """The stage that measures the effects of single ablations."""
    return f"every component alone on {task} ({response})"


def _responses(grid: Grid) -> tuple[Response, ...]:
    """Returns the responses of top-k recall and of the methods' intervals."""
    probability = any(searches.METHODS[method].response == "probability" for method in grid.methods)
    return ("accuracy", "probability") if probability else ("accuracy",)
