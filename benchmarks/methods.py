"""Every method against rows, on models and on simulated ones: `python benchmarks/methods.py`.

    python benchmarks/methods.py --plan                # cells, rows, minutes; nothing is run
    python benchmarks/methods.py --out DIR [--only-methods M1,M2] [--only-models reference]
                                 [--seeds 5] [--simulations]
    python benchmarks/methods.py --out DIR --only-methods M1,M2 --only-models MODEL --budgets 400
                                 [--tasks T1,T2]    # a comparison of one's own, on any model
    python benchmarks/methods.py --out DIR --write  # DIR's cells into the CSV, then as below
    python benchmarks/methods.py --write  # RESULTS.md, methods.png from this folder's CSV files

Every cell is one search (`comparison.py`, `simulations.py`). They are stored in DIR, and the same
command resumes. Parts of the study can be run one after another into one DIR.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from prepared import prepare

prepare()

import numpy as np
from comparison import Cell, CellKey, Grid, compare, method_cells, parse_methods
from pages import write_section
from simulated_tasks import TASK_SCENARIOS
from simulations import (
    PLANTED_SCENARIOS,
    SIMULATED_COLUMNS,
    SimulatedGrid,
    SimulatedSummary,
    run_simulations,
    simulated_cells,
    simulated_texts,
    summarize_simulations,
)
from summaries import MethodSummary, columns, markdown, summarize, texts_of
from targets import STUDIED, targets

from broca import Workspace, searches
from broca.cli.progress import PrintOptions, ProgressDisplay
from broca.errors import BadInput
from broca.results.files import check_out_folder
from broca.searches import OtherTask, Problem

HERE = Path(__file__).parent
CELLS = HERE / "methods-cells.csv"
SIMULATIONS = HERE / "methods-simulations.csv"
COLUMNS = (
    "model", "method", "budget", "task", "other_tasks", "seeds", "refused", "lost_by_seed",
    "others_lost_by_seed", "selected_by_seed", "rows_by_seed", "recall_by_seed", "false_by_seed",
    "mean_top", "mean_seconds", "intervals", "held",
)  # fmt: skip
RATE = 2000
"""Rows per second that the plan assumes."""
REPORT_ITEMS = 120
EXHAUSTIVE_ITEMS = 120
TASKS, SAME_CAPABILITY = 10, 6
"""Shipped tasks, and the number of them that share their capability with another."""

EQUAL_ROWS = ("pooled", "cs-fresh", "cs-stratified", "coar", "co-ablation")
"""Methods that are compared on simulated tasks, all with the same rows."""
CONTRAST = ("pooled",)
TUNED = ("cs-tuned",)
PEERS = tuple(method for method in searches.METHODS if method not in (*CONTRAST, *TUNED))
MODEST = ("greedy", "one-shot", "co-ablation", "gradient", "gradient-integrated")
"""Peers that never spend more than their default rows."""
SPENDERS = tuple(method for method in PEERS if method not in MODEST)
GREEDY = {"reference": 47_100, "planted": 28_900}
"""Mean default rows of greedy."""
SHARED_OUT = {"reference": 4_700, "planted": 2_900}
"""Rows for each task that give methods that measure all tasks about as many rows as greedy."""
SEEDS = 5
MEASURED = (
    "November 2026, x86_64, torch 2.13.0. Command: `python benchmarks/methods.py --out DIR`, then "
    "the same with `--simulations`, then with `--write`. "
    "`benchmarks/README.md` says what the columns mean."
)


@dataclass(frozen=True)
class Stage:
    """A part of the grid.

    Attributes:
        model: The shipped model.
        methods: Methods.
        budgets: Rows for each measured task; None for a method's default.
        seeds: Number of seeds.
    """

    model: str
    methods: tuple[str, ...]
    budgets: tuple[int | None, ...]
    seeds: int


def stages(seeds: int) -> list[Stage]:
    """Returns the stages: from 100 rows to those of greedy; twice the seeds where targets are."""
    return [
        stage
        for model in ("reference", "planted")
        for stage in (
            Stage(model, CONTRAST, (None,), 2 * seeds),
            Stage(model, CONTRAST, (100, 400, SHARED_OUT[model]), seeds),
            Stage(model, PEERS, (100, 400, 1600, None), seeds),
            Stage(model, SPENDERS, (GREEDY[model],), seeds),
            Stage(model, TUNED, (100, 400, 1600, 6400, GREEDY[model]), seeds),
        )
    ]


def simulated_grids(seeds: int, methods: tuple[str, ...]) -> list[SimulatedGrid]:
    """Returns the grids: all scenarios for `pooled`, one with many problems for all.

    At the size of the target, `pooled` and the closest method have a hundred problems.
    Methods that can spend equal rows are compared on simulated tasks as well. `cs-fresh` is left
    out, because its regression, which grows with masks x components and is repeated for every
    resample, takes 14 s at 400 x 1,024 (experiments/LOG.md).
    """
    contrast = tuple(method for method in methods if method in CONTRAST)
    peers = tuple(method for method in methods if method not in (*CONTRAST, "cs-fresh"))
    close = tuple(method for method in methods if method == "gradient-masked")
    equal = tuple(method for method in methods if method in EQUAL_ROWS)
    single, double, fourfold, twentyfold = (tuple(range(times * seeds)) for times in (1, 2, 4, 20))
    grids = [
        SimulatedGrid(contrast, (512, 1024), tuple(PLANTED_SCENARIOS), (300, 1000, 3000), single),
        SimulatedGrid((*contrast, *peers), (8192,), ("heavy",), (3000,), fourfold),
        SimulatedGrid((*contrast, *peers), (512, 1024), ("heavy",), (1000, 3000), fourfold),
        SimulatedGrid((*contrast, *close), (1024,), ("heavy",), (1000,), twentyfold),
        SimulatedGrid(equal, (40, 96), tuple(TASK_SCENARIOS), (4800,), double),
    ]
    return [grid for grid in grids if grid.methods]


def chosen(study_stages: list[Stage], options: argparse.Namespace) -> list[Stage]:
    """Returns the stages of the models and methods that the options name."""
    only, models = parse_methods(options.only_methods), options.only_models.split(",")
    if options.budgets:
        budgets = tuple(int(number) for number in options.budgets.split(","))
        return [Stage(model, only, budgets, options.seeds) for model in models]
    narrowed = [
        replace(stage, methods=tuple(method for method in stage.methods if method in only))
        for stage in study_stages
        if stage.model in models
    ]
    return [stage for stage in narrowed if stage.methods and stage.seeds]


def rows_of(method: str, budget: int | None, others: int) -> int:
    """Returns the rows of one cell's search at this study's size; 0 if the method refuses."""
    items = np.arange(100)
    contrast = searches.METHODS[method].measures_others
    problem = Problem(
        components=96,
        items=items,
        k=5,
        rows=None if budget is None else budget * (1 + others * contrast),
        seed=0,
        confirm=items + 100,
        others=tuple(OtherTask(str(number), items, items + 100) for number in range(others)),
    )
    try:
        return searches.METHODS[method].most_rows(problem)
    except BadInput:
        return 0


def plan(study_stages: list[Stage]) -> None:
    """Prints the cells, rows and minutes of the stages."""
    total_rows = total_cells = 0
    counted: dict[tuple[str, int | None, int], int] = {}
    by_method: dict[str, list[int]] = {}
    for stage in study_stages:
        for method in stage.methods:
            for budget in stage.budgets:
                rows = ran = 0
                for others, tasks in ((9, TASKS - SAME_CAPABILITY), (8, SAME_CAPABILITY)):
                    if not searches.METHODS[method].measures_others:
                        others = 9
                    key = method, budget, others
                    if key not in counted:
                        counted[key] = rows_of(*key)
                    rows += stage.seeds * tasks * counted[key]
                    ran += stage.seeds * tasks * (counted[key] > 0)
                totals = by_method.setdefault(method, [0, 0, 0])
                totals[0] += ran
                totals[1] += rows
                totals[2] += 2 * REPORT_ITEMS * ran
    for method, (cells, rows, proof) in by_method.items():
        total_cells += cells
        total_rows += rows + proof
        print(
            f"{method:20} {cells:6,} cells {rows:12,} rows {proof:10,} to prove "
            f"{(rows + proof) / RATE / 60:6.1f} min"
        )
    models = len({stage.model for stage in study_stages})
    single = models * TASKS * 2 * 97 * EXHAUSTIVE_ITEMS
    print(f"{'every head alone':20} {'':6}       {single:12,} rows {'':20} "
          f"{single / RATE / 60:6.1f} min")  # fmt: skip
    print(f"{total_cells:,} cells, {total_rows + single:,} rows, "
          f"{(total_rows + single) / RATE / 60:.0f} min at {RATE:,} rows/s")  # fmt: skip


def measure(
    study_stages: list[Stage], folder: Path, options: argparse.Namespace, progress: ProgressDisplay
) -> None:
    """Runs the cells that the folder lacks; all stages share one journal."""
    cells = method_cells(folder)
    with Workspace(folder / "journal.sqlite") as workspace:
        for stage in study_stages:
            grid = Grid(
                stage.methods, stage.budgets, range(stage.seeds), options.tasks, options.tasks,
                report_items=REPORT_ITEMS, exhaustive=options.exhaustive,
            )  # fmt: skip
            compare(stage.model, grid, cells, workspace, on_progress=progress)


def ordered(cells: Iterable[Cell]) -> list[Cell]:
    """Returns the cells of the study in the order of its tables; former methods come last."""
    cells = list(cells)
    methods = list(dict.fromkeys([*searches.METHODS, *(cell.key.method for cell in cells)]))
    chosen = [
        cell
        for cell in cells
        if (cell.key.report_items, cell.key.exhaustive) == (REPORT_ITEMS, EXHAUSTIVE_ITEMS)
    ]
    return sorted(
        chosen,
        key=lambda cell: (
            cell.model == "planted",
            methods.index(cell.key.method),
            cell.key.seed,
            cell.key.task,
        ),
    )


def write_cells(cells: list[Cell], path: Path = CELLS) -> None:
    """Writes the key figures of cells as CSV, one line for each model, method, budget and task.

    A column that ends in `_by_seed` has the values of the seeds in order, separated by spaces, with
    `-` for an unknown value; a value that all seeds share is written once. `lost` is the number of
    right answers to report items of the task that are lost with the selected heads ablated;
    `others_lost` is that of all other tasks together. Drops are the shares of these numbers, so
    that no digit is lost.
    """
    groups: dict[tuple[str, str, int | None, str], list[Cell]] = {}
    for cell in cells:
        key = (cell.model, cell.key.method, cell.key.budget, cell.key.task)
        groups.setdefault(key, []).append(cell)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for (model, method, budget, task), members in groups.items():
            members = sorted(members, key=lambda cell: cell.key.seed)
            assert [cell.key.seed for cell in members] == list(range(len(members)))
            done = [cell for cell in members if cell.done]
            line = {
                "model": model, "method": method, "budget": budget or "", "task": task,
                "other_tasks": len(members[0].key.others), "seeds": len(members),
                "refused": len(members) - len(done),
            }  # fmt: skip
            if done:
                assert len(done) == len(members), "some seeds are refused and some are not"
                line |= figures_of(done)
            writer.writerow(line)


def renewed(before: list[Cell], new: Iterable[Cell]) -> list[Cell]:
    """Returns the cells with new ones in place of those of their model, method and budget."""

    def place(cell: Cell) -> tuple[str, str, int | None]:
        return cell.model, cell.key.method, cell.key.budget

    new = list(new)
    places = {place(cell) for cell in new}
    return [*(cell for cell in before if place(cell) not in places), *new]


def figures_of(cells: list[Cell]) -> dict[str, str | int]:
    """Returns the figures of the cells of one line."""
    others = others_items(len(cells[0].key.others))
    tops = [cell.top for cell in cells if cell.top is not None]
    return {
        "lost_by_seed": joined([count(cell.drop, REPORT_ITEMS) for cell in cells]),
        "others_lost_by_seed": joined([count(cell.off_target, others) for cell in cells]),
        "selected_by_seed": joined([len(cell.selected) for cell in cells]),
        "rows_by_seed": joined([cell.rows for cell in cells]),
        "recall_by_seed": joined([cell.recall for cell in cells]),
        "false_by_seed": joined([cell.false for cell in cells]),
        "mean_top": f"{np.mean(tops):.6g}" if tops else "",
        "mean_seconds": f"{np.mean([cell.seconds for cell in cells]):.3f}",
        "intervals": sum(cell.intervals for cell in cells) or "",
        "held": sum(cell.held for cell in cells) if any(cell.intervals for cell in cells) else "",
    }


def others_items(tasks: int) -> int:
    """Returns the report items of all other tasks together, the same number of each."""
    return tasks * max(5, REPORT_ITEMS // max(1, tasks))


def count(share: float, items: int) -> int:
    """Returns a share as a number of items, which must be whole."""
    number = round(share * items)
    assert abs(share * items - number) < 1e-6, f"{share} is no share of {items} items"
    return number


def joined(values: list[float | int | None]) -> str:
    """Joins values by spaces, `-` for an unknown one; a value that all share is written once."""
    words = ["-" if value is None else f"{value:.10g}" for value in values]
    return words[0] if len(set(words)) == 1 else " ".join(words)


def read_cells(path: Path = CELLS) -> list[Cell]:
    """Returns cells with the figures of `write_cells`, from which tables and targets are made.

    Each cell of a line has the means of the line and a part of its intervals.
    """
    cells = []
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            seeds, others = int(line["seeds"]), int(line["other_tasks"])
            by_seed = {
                name.removesuffix("_by_seed"): (text.split() * seeds)[:seeds]
                for name, text in line.items()
                if name.endswith("_by_seed")
            }
            for seed in range(seeds):
                key = CellKey(
                    line["model"], line["task"], tuple(map(str, range(others))), 100,
                    REPORT_ITEMS, EXHAUSTIVE_ITEMS, line["method"],
                    int(line["budget"]) if line["budget"] else None, seed, 5,
                )  # fmt: skip
                cell = Cell(key, line["model"], line["task"], refused="refused")
                if line["refused"] == "0":
                    values = {name: words[seed] for name, words in by_seed.items()}
                    cell = replace(
                        cell,
                        refused="",
                        selected=tuple(map(str, range(int(values["selected"])))),
                        drop=int(values["lost"]) / REPORT_ITEMS,
                        off_target=int(values["others_lost"]) / others_items(others),
                        rows=int(values["rows"]),
                        seconds=float(line["mean_seconds"]),
                        recall=None if values["recall"] == "-" else float(values["recall"]),
                        false=None if values["false"] == "-" else int(values["false"]),
                        top=float(line["mean_top"]) if line["mean_top"] else None,
                        intervals=shared(int(line["intervals"] or 0), seed, seeds),
                        held=shared(int(line["held"] or 0), seed, seeds),
                    )
                cells.append(cell)
    return sorted(cells, key=lambda cell: cell.key.seed)


def shared(total: int, place: int, parts: int) -> int:
    """Returns a part of a number; the parts add up to the number."""
    return total // parts + (place < total % parts)


def write_simulations(summaries: Sequence[SimulatedSummary], path: Path = SIMULATIONS) -> None:
    """Writes summaries of simulations as CSV."""
    names = [field.name for field in fields(SimulatedSummary)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for line in summaries:
            values = [getattr(line, name) for name in names]
            writer.writerow(f"{v:.6g}" if isinstance(v, float) else v for v in values)


def renewed_simulations(
    before: list[SimulatedSummary], new: list[SimulatedSummary]
) -> list[SimulatedSummary]:
    """Returns summaries with new ones in place of those of their problem, method and rows."""

    def place(line: SimulatedSummary) -> tuple[int, str, str, int]:
        return line.components, line.scenario, line.method, line.rows

    lines = list({place(line): line for line in (*before, *new)}.values())
    tables = list(dict.fromkeys((line.components, line.scenario) for line in lines))
    return sorted(lines, key=lambda line: tables.index((line.components, line.scenario)))


def read_simulations(path: Path = SIMULATIONS) -> list[SimulatedSummary]:
    """Returns the summaries that `write_simulations` wrote."""
    kinds = {"str": str, "int": int, "float": float, "float | None": number_or_none}
    types = {field.name: kinds[str(field.type)] for field in fields(SimulatedSummary)}
    with path.open(encoding="utf-8", newline="") as file:
        return [
            SimulatedSummary(**{name: types[name](text) for name, text in line.items()})
            for line in csv.DictReader(file)
        ]


def number_or_none(text: str) -> float | None:
    """Returns a number, or None for an empty text."""
    return float(text) if text else None


def section(
    cells: list[Cell], lines: list[MethodSummary], simulated: list[SimulatedSummary]
) -> str:
    """Returns the section of RESULTS.md."""
    parts = [
        "## Methods\n",
        f"{MEASURED}\n",
        "A budget is rows for each measured task: `pooled` measures the other tasks too "
        "and has as many for each of them; *rows* is what a search spent in all. A search that "
        "selects nothing counts with drops of 0. Seconds are as they came, on 2 cores or 4, "
        "with other work on the machine or without. `methods-cells.csv` and "
        "`methods-simulations.csv` hold the figures of the cells: "
        "`python benchmarks/methods.py --write` makes the tables from them, and with "
        "`--out DIR` puts the cells in DIR in place of theirs.\n",
    ]
    for model in dict.fromkeys(line.model for line in lines):
        shown = [line for line in lines if line.model == model]
        parts.append(f"### On `{model}`\n")
        parts.append(markdown(columns(shown), [texts_of(line, shown) for line in shown]))
    parts.append("![Quality against rows](methods.png)\n")
    if simulated:
        parts.append("### On simulated models\n")
        parts.append(markdown(SIMULATED_COLUMNS, [simulated_texts(line) for line in simulated]))
    parts.append("### Targets\n")
    for method in STUDIED:
        judged = targets(cells, lines, simulated, candidate=method)
        parts.append(f"`{method}`:\n")
        parts.append("".join(f"- {target}\n" for target in judged))
    return "\n".join(parts)


def write(page: Path = HERE / "RESULTS.md") -> None:
    """Writes the section of RESULTS.md and the figure from the CSV files."""
    cells, simulated = read_cells(), read_simulations()
    lines = summarize(cells)
    write_section(page, section(cells, lines, simulated))
    draw(lines, page.with_name("methods.png"))


def draw(lines: list[MethodSummary], path: Path) -> None:
    """Draws the mean specific drop against rows (log axis): a panel a model, a line a method."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    models = list(dict.fromkeys(line.model for line in lines))
    figure, axes = pyplot.subplots(
        1, len(models), figsize=(7 * len(models), 5), squeeze=False, sharey=True
    )
    colors = pyplot.get_cmap("tab20")(np.linspace(0, 1, len(searches.METHODS)))
    for axis, model in zip(axes[0], models, strict=True):
        for method, color in zip(searches.METHODS, colors, strict=True):
            method_lines = [
                line
                for line in lines
                if (line.model, line.method) == (model, method) and line.cells and line.rows
            ]
            method_lines.sort(key=lambda line: line.rows)
            if method_lines:
                axis.plot(
                    [line.rows for line in method_lines], [line.specific for line in method_lines],
                    marker="o", color=color, label=method, linewidth=3 if method in CONTRAST else 1,
                )  # fmt: skip
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 3)))
        axis.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        axis.xaxis.set_minor_formatter(ticker.NullFormatter())
        axis.set_title(model)
        axis.set_xlabel("rows of a search, all measured tasks together")
        axis.grid(color="#e4e7eb")
    axes[0][0].set_ylabel("mean specific drop")
    axes[0][-1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    """Prints the plan, runs the cells or writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="Folder of the cells; default: broca-bench.")
    parser.add_argument("--only-methods", default="all")
    parser.add_argument("--only-models", default="reference,planted")
    parser.add_argument("--tasks", default="auto", help="Names joined by commas; all by default.")
    parser.add_argument("--budgets", help="Rows for each measured task, instead of the study's.")
    parser.add_argument("--exhaustive", type=int, default=EXHAUSTIVE_ITEMS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--plan", action="store_true", help="Print cells, rows and minutes.")
    parser.add_argument("--simulations", action="store_true", help="Run the simulations instead.")
    parser.add_argument("--write", action="store_true", help="Write RESULTS.md; run nothing.")
    options = parser.parse_args()
    study_stages = chosen(stages(options.seeds), options)
    if options.plan:
        plan(study_stages)
        return
    folder = check_out_folder(options.out or "broca-bench")
    if options.write:
        if options.out:
            write_cells(ordered(renewed(read_cells(), method_cells(folder).read().values())))
            summaries = summarize_simulations(simulated_cells(folder).read().values())
            write_simulations(renewed_simulations(read_simulations(), summaries))
        write()
        return
    progress = ProgressDisplay(PrintOptions())
    try:
        if options.simulations:
            cells = simulated_cells(folder)
            for grid in simulated_grids(options.seeds, parse_methods(options.only_methods)):
                run_simulations(grid, cells, on_progress=progress)
        else:
            measure(study_stages, folder, options, progress)
    finally:
        progress.close()
    simulated = summarize_simulations(simulated_cells(folder).read().values())
    if options.simulations:
        for summary in simulated:
            print("  ".join(simulated_texts(summary)))
        return
    cells = list(method_cells(folder).read().values())
    cells = cells if options.budgets else ordered(cells)
    lines = summarize(cells)
    for line in lines:
        print("  ".join(texts_of(line, lines)))
    for method in () if options.budgets else STUDIED:
        for target in targets(cells, lines, simulated, candidate=method):
            print(f"{method}: {target}")


if __name__ == "__main__":
    main()
