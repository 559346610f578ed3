"""`broca bench methods` in one call: cells, exhaustive effects, summary, targets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from broca import searches
from broca.errors import BadInput
from broca.measurement import Response
from broca.models import GatedModel, load
from broca.results.files import check_out_folder
from broca.runs.workbench import Report, requested
from broca.studies.methods.arena import Arena
from broca.studies.methods.cells import Cell, CellFile, CellKey, cell_file
from broca.studies.methods.page import save_page
from broca.studies.methods.running import Grid, parse_methods, run_grid
from broca.studies.methods.simulations import simulated_file
from broca.studies.methods.summary import Line, summarize
from broca.studies.methods.targets import CANDIDATE, Target, targets
from broca.studies.methods.truth import ExhaustiveFolder

EXHAUSTIVE_ITEMS = 300
"""Items on which every component is lost alone."""


@dataclass(frozen=True)
class Comparison:
    """What a comparison found, over all cells of its folder that can be compared with its own.

    Attributes:
        cells: The cells.
        lines: Their summary.
        targets: What the default method is meant to reach.
        ran: Cells that this call ran.
        page: The page.
        left_out: Cells of the folder with other items, other k or other models.
    """

    cells: tuple[Cell, ...]
    lines: tuple[Line, ...]
    targets: tuple[Target, ...]
    ran: int
    page: Path
    left_out: int


def compare_methods(
    models: Sequence[str | GatedModel],
    *,
    methods: str | Sequence[str] = "all",
    tasks: str | Sequence[str] = "auto",
    others: str | Sequence[str] = "auto",
    include_path: str | Path | None = None,
    budgets: Sequence[int | None] = (None,),
    seeds: Sequence[int] = (0,),
    k: int = 5,
    items: int = 100,
    report_items: int = 300,
    exhaustive: int = EXHAUSTIVE_ITEMS,
    candidate: str = CANDIDATE,
    again: Sequence[str] = (),
    out: str | Path,
    dtype: str = "auto",
    device: str | None = None,
    allow_pickle: bool = False,
    on_progress: Report | None = None,
) -> Comparison:
    """Runs every method with every budget and seed on every task, and sums up.

    Each model's tasks, items and intact scores are made once. Cells that the folder has are not
    run again.

    Args:
        models: Shipped models, local folders, hub ids, or what `broca.load` returned.
        methods: Names, or `all`.
        tasks: The tasks to localize; `auto` for all shipped ones, or those of `include_path`.
        others: The tasks that selections should leave alone, as for `localize`.
        include_path: A folder of lm-eval YAML tasks to add.
        budgets: Rows for each measured task; None for what a method takes by itself.
        seeds: Seeds of the items and of the searches.
        k: Most components to select.
        items: Most items to search on.
        report_items: Most report items of the task, and of all others together.
        exhaustive: Items on which every component is lost alone, for top-k recall and calibration;
            0 for neither.
        candidate: The method that the targets are about.
        again: Methods whose cells are run again, of those that this call is about.
        out: Folder for `methods.jsonl`, the exhaustive effects and `methods.html`.
        dtype: Number format of the weights, if a model has yet to be loaded.
        device: Device, if a model has yet to be loaded.
        allow_pickle: Whether weights in pickle format may be loaded.
        on_progress: Receives what is going on.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    for name, value in (("--k", k), ("--items", items), ("--report-items", report_items)):
        if value < 1:
            raise BadInput(f"{name} must be at least 1, not {value}")
    if exhaustive < 0:
        raise BadInput(f"--exhaustive must be 0 or more, not {exhaustive}")
    if not models or not seeds:
        raise BadInput("nothing to compare: give at least one model and one seed")
    grid = Grid(parse_methods(methods), tuple(budgets), tuple(seeds), k)
    for name in (candidate, *again):
        searches.require_method(name)
    if idle := [name for name in again if name not in grid.methods]:
        raise BadInput(
            f"--again {','.join(idle)} is about no method of --methods: name it there too"
        )
    folder = check_out_folder(out)
    file = cell_file(folder)
    truth = ExhaustiveFolder(folder)
    report: Report = on_progress or (lambda stage, progress: None)
    fingerprints: set[str] = set()
    ran = 0
    for one in models:
        model = one
        if not isinstance(model, GatedModel):
            report(f"loading {model}", None)
            model = load(model, dtype=dtype, device=device, allow_pickle=allow_pickle)
        if k > len(model.components):
            raise BadInput(
                f"--k {k} is more than the {len(model.components)} {model.kinds} of {model.name}"
            )
        arena = Arena.build(
            model,
            tasks=_listed(tasks),
            others=_listed(others),
            include_path=include_path,
            items=items,
            report_items=report_items,
            on_progress=report,
        )
        fingerprints.add(model.fingerprint)
        _forget(file, {key for key in grid.keys(arena) if key.method in again})
        if exhaustive:
            truth.measure(
                arena, arena.names, _responses(grid), items=exhaustive, on_progress=report
            )
        ran += run_grid(arena, grid, file, on_progress=report)
    return conclude(
        folder,
        fingerprints=fingerprints,
        k=k,
        items=items,
        report_items=report_items,
        candidate=candidate,
        ran=ran,
    )


def conclude(
    folder: Path,
    *,
    fingerprints: Collection[str],
    k: int = 5,
    items: int = 100,
    report_items: int = 300,
    candidate: str = CANDIDATE,
    ran: int = 0,
) -> Comparison:
    """Sums up the cells that a folder has, and writes its page. Nothing is measured.

    Args:
        folder: The out folder.
        fingerprints: The models to sum up.
        k: Only cells with this k, and with the two numbers of items that follow.
        items: Most items to search on.
        report_items: Most report items.
        candidate: The method that the targets are about.
        ran: Cells that were run just now, for the record.

    Raises:
        BadInput: A file of the folder holds something else, or the page cannot be written.
    """
    every = cell_file(folder).pieces
    cells = tuple(
        cell
        for cell in every
        if cell.key.fingerprint in fingerprints
        and (cell.key.k, cell.key.items, cell.key.report_items) == (k, items, report_items)
    )
    lines = tuple(summarize(cells, ExhaustiveFolder(folder)))
    simulated = simulated_file(folder).pieces
    found = tuple(targets(cells, lines, simulated, candidate=candidate))
    page = save_page(lines, found, folder)
    return Comparison(cells, lines, found, ran, page, len(every) - len(cells))


def _forget(file: CellFile, keys: Collection[CellKey]) -> None:
    """Takes cells out of a file, so that they are run again."""
    file.forget(lambda cell: cell.key in keys)


def _listed(names: str | Sequence[str]) -> str | Sequence[str]:
    return names if names == "auto" else requested(names)


def _responses(grid: Grid) -> tuple[Response, ...]:
    """What the methods' intervals are in, and the accuracy, which top-k recall is in."""
    wanted: dict[Response, None] = {"accuracy": None}
    for method in grid.methods:
        response = searches.require_method(method).response
        if response == "probability":
            wanted[response] = None
    return tuple(wanted)
