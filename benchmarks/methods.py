"""Every method against rows, on models and on simulated ones: `python benchmarks/methods.py`.

    python benchmarks/methods.py --plan                # cells, rows, minutes; nothing is run
    python benchmarks/methods.py --out DIR [--only-methods M1,M2] [--only-models reference]
                                 [--seeds 5] [--simulations]
    python benchmarks/methods.py --out DIR --write            # RESULTS.md and methods.png, from DIR

The cells are those of `broca bench methods` (docs/bench.md): they are kept in DIR, and the same
command goes on. Parts of the study can be run one after another into one DIR.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from broca.executors.process import tune_process

tune_process()  # as the command line does, before torch

import numpy as np
import torch

from broca import searches
from broca.cli.progress import ProgressLine
from broca.models import load
from broca.results.files import check_out_folder
from broca.searches import OtherTask, Problem
from broca.studies.methods import (
    Arena,
    Comparison,
    ExhaustiveFolder,
    Grid,
    SimulatedGrid,
    cell_file,
    conclude,
    parse_methods,
    run_grid,
    run_simulations,
    simulated_file,
    summarize_simulations,
)
from broca.studies.methods.simulations import SCENARIOS
from broca.studies.methods.tables import (
    SIMULATED_COLUMNS,
    cells_of,
    columns,
    markdown,
    simulated_cells,
)
from broca.verbs.plan import count_rows

HERE = Path(__file__).parent
RATE = 2000
"""Rows a second that the plan counts with."""
REPORT_ITEMS = 120
EXHAUSTIVE_ITEMS = 120
TASKS, SAME_CAPABILITY = 10, 6
"""Shipped tasks, and how many of them share their capability with one other."""

CONTRAST = ("focus",)
TUNED = ("cs-tuned",)
PEERS = tuple(one for one in searches.METHODS if one not in (*CONTRAST, *TUNED))
MODEST = ("greedy", "one-shot", "co-ablation", "gradient", "gradient-integrated")
"""Peers that never spend more than they take by themselves."""
SPENDERS = tuple(one for one in PEERS if one not in MODEST)
GREEDY = {"reference": 47_100, "planted": 28_900}
"""Rows that greedy takes by itself, on average."""
FOCUS = {"reference": 4_700, "planted": 2_900}
"""Rows for each measured task that come to about as many for `focus`."""
SEEDS = 5


@dataclass(frozen=True)
class Stage:
    """A part of the grid.

    Attributes:
        model: The shipped model.
        methods: Methods.
        budgets: Rows for each measured task; None for what a method takes by itself.
        seeds: How many seeds.
    """

    model: str
    methods: tuple[str, ...]
    budgets: tuple[int | None, ...]
    seeds: int


def stages(seeds: int) -> list[Stage]:
    """The study: from 100 rows to what greedy takes; twice the seeds where the targets are."""
    return [
        stage
        for model in ("reference", "planted")
        for stage in (
            Stage(model, CONTRAST, (None,), 2 * seeds),
            Stage(model, CONTRAST, (100, 400, FOCUS[model]), seeds),
            Stage(model, PEERS, (100, 400, 1600, None), seeds),
            Stage(model, SPENDERS, (GREEDY[model],), seeds),
            Stage(model, TUNED, (100, 400, 1600, 6400, GREEDY[model]), seeds),
        )
    ]


def simulated_grids(seeds: int, methods: tuple[str, ...]) -> list[SimulatedGrid]:
    """Simulations: everything for `focus`, and many problems of one scenario for all methods.

    Where the target is, `focus` and the method that comes closest to it have a hundred.

    `cs-fresh` is left out: its regression, which grows with masks x components and is
    repeated for every resample, takes 14 s at 400 x 1,024 already (experiments/LOG.md).
    """
    focus = tuple(one for one in methods if one in CONTRAST)
    peers = tuple(one for one in methods if one not in (*CONTRAST, "cs-fresh"))
    close = tuple(one for one in methods if one == "gradient-masked")
    few, many, most = (tuple(range(times * seeds)) for times in (1, 4, 20))
    grids = [
        SimulatedGrid(focus, (512, 1024), tuple(SCENARIOS), (300, 1000, 3000), few),
        SimulatedGrid((*focus, *peers), (8192,), ("heavy",), (3000,), many),
        SimulatedGrid((*focus, *peers), (512, 1024), ("heavy",), (1000, 3000), many),
        SimulatedGrid((*focus, *close), (1024,), ("heavy",), (1000,), most),
    ]
    return [grid for grid in grids if grid.methods]


def chosen(some: list[Stage], options: argparse.Namespace) -> list[Stage]:
    """The stages of the models and methods that were asked for."""
    only = parse_methods(options.only_methods)
    models = options.only_models.split(",")
    kept = [
        Stage(one.model, tuple(m for m in one.methods if m in only), one.budgets, one.seeds)
        for one in some
        if one.model in models
    ]
    return [one for one in kept if one.methods and one.seeds]


def rows_of(method: str, budget: int | None, others: int) -> int:
    """Rows of one cell's search, counted on a problem of this study's size; 0 if it refuses."""
    items = np.arange(100)
    contrast = searches.METHODS[method].measures_others
    problem = Problem(
        components=96,
        items=items,
        k=5,
        rows=None if budget is None else budget * (1 + others * contrast),
        seed=0,
        confirm=items + 100,
        others=tuple(OtherTask(str(one), items, items + 100) for one in range(others)),
    )
    speeds = {"accuracy": float(RATE), "probability": float(RATE)}
    return count_rows(method, problem, np.ones(200, dtype=np.int64), speeds).rows


def plan(some: list[Stage]) -> None:
    """Prints what the stages would take."""
    total_rows = total_cells = 0
    counted: dict[tuple[str, int | None, int], int] = {}
    by_method: dict[str, list[int]] = {}
    for stage in some:
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
                told = by_method.setdefault(method, [0, 0, 0])
                told[0] += ran
                told[1] += rows
                told[2] += 2 * REPORT_ITEMS * ran
    for method, (cells, rows, proof) in by_method.items():
        total_cells += cells
        total_rows += rows + proof
        print(
            f"{method:20} {cells:6,} cells {rows:12,} rows {proof:10,} to prove "
            f"{(rows + proof) / RATE / 60:6.1f} min"
        )
    models = len({stage.model for stage in some})
    single = models * TASKS * 2 * 97 * EXHAUSTIVE_ITEMS
    print(f"{'every head alone':20} {'':6}       {single:12,} rows {'':20} "
          f"{single / RATE / 60:6.1f} min")  # fmt: skip
    print(f"{total_cells:,} cells, {total_rows + single:,} rows, "
          f"{(total_rows + single) / RATE / 60:.0f} min at {RATE:,} rows/s")  # fmt: skip


def measure(some: list[Stage], folder: Path, progress: ProgressLine) -> None:
    """Runs the cells that the folder does not have, each model's stages on one arena."""
    file, truth = cell_file(folder), ExhaustiveFolder(folder)
    for name in dict.fromkeys(stage.model for stage in some):
        model = load(name, device="cpu")
        arena = Arena.build(model, report_items=REPORT_ITEMS, on_progress=progress)
        truth.measure(
            arena, arena.names, ("accuracy", "probability"), items=EXHAUSTIVE_ITEMS,
            on_progress=progress,
        )  # fmt: skip
        for stage in some:
            if stage.model == name:
                grid = Grid(stage.methods, stage.budgets, tuple(range(stage.seeds)))
                run_grid(arena, grid, file, on_progress=progress)


def concluded(folder: Path) -> Comparison:
    """The summary of everything in the folder."""
    fingerprints = {cell.key.fingerprint for cell in cell_file(folder).pieces}
    return conclude(folder, fingerprints=fingerprints, report_items=REPORT_ITEMS)


def section(found: Comparison, folder: Path) -> str:
    """The section of RESULTS.md."""
    lines = [
        "## Methods\n",
        f"{date.today()}, {os.cpu_count()} CPU cores ({platform.machine()}), torch "
        f"{torch.__version__.split('+')[0]}. Command: `python benchmarks/methods.py --out DIR`, "
        "then the same with `--simulations`, then with `--write`. docs/bench.md says what the "
        "columns mean.\n",
        "A budget is rows for each measured task: `focus` measures the other tasks too and has as "
        "many for each of them; *rows* is what a search spent in all. A search that selects "
        "nothing counts with drops of 0. Seconds are as they came, on 2 cores or 4, with other "
        "work on the machine or without. `methods-cells.tar.xz` holds the cells; unpacked into "
        "DIR, the study goes on from them.\n",
    ]
    for model in dict.fromkeys(line.model for line in found.lines):
        own = [line for line in found.lines if line.model == model]
        lines.append(f"### On `{model}`\n")
        lines.append(markdown(columns(own), [cells_of(line, own) for line in own]))
    lines.append("![Quality against rows](methods.png)\n")
    simulated = summarize_simulations(simulated_file(folder).pieces)
    if simulated:
        lines.append("### On simulated models\n")
        rows = [simulated_cells(line) for line in simulated]
        lines.append(markdown(SIMULATED_COLUMNS, rows))
    lines.append("### Targets\n")
    lines.append("".join(f"- {target}\n" for target in found.targets))
    return "\n".join(lines)


def write(found: Comparison, folder: Path, page: Path = HERE / "RESULTS.md") -> None:
    """Puts the section in the place of the one before, or at the end."""
    text = page.read_text(encoding="utf-8")
    rest = re.sub(r"^## Methods\n.*?(?=^## |\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    page.write_text(rest.rstrip() + "\n\n" + section(found, folder), encoding="utf-8")
    draw(found, page.with_name("methods.png"))


def draw(found: Comparison, path: Path) -> None:
    """Mean specific drop against rows, log axis, one line a method, a panel for each model."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    models = list(dict.fromkeys(line.model for line in found.lines))
    figure, axes = pyplot.subplots(
        1, len(models), figsize=(7 * len(models), 5), squeeze=False, sharey=True
    )
    colors = pyplot.get_cmap("tab20")(np.linspace(0, 1, len(searches.METHODS)))
    for axis, model in zip(axes[0], models, strict=True):
        for method, color in zip(searches.METHODS, colors, strict=True):
            own = [
                line
                for line in found.lines
                if (line.model, line.method) == (model, method) and line.cells and line.rows
            ]
            own.sort(key=lambda line: line.rows)
            if own:
                axis.plot(
                    [line.rows for line in own], [line.specific for line in own],
                    marker="o", color=color, label=method, linewidth=3 if method == "focus" else 1,
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
    """Plans, measures or writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="broca-bench")
    parser.add_argument("--only-methods", default="all")
    parser.add_argument("--only-models", default="reference,planted")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--plan", action="store_true", help="Print cells, rows and minutes.")
    parser.add_argument("--simulations", action="store_true", help="Run the simulations instead.")
    parser.add_argument("--write", action="store_true", help="Write RESULTS.md; run nothing.")
    options = parser.parse_args()
    some = chosen(stages(options.seeds), options)
    if options.plan:
        plan(some)
        return
    folder = check_out_folder(options.out)
    progress = ProgressLine(plain=False)
    try:
        if options.simulations:
            file = simulated_file(folder)
            for grid in simulated_grids(options.seeds, parse_methods(options.only_methods)):
                run_simulations(grid, file, on_progress=progress)
            for line in summarize_simulations(file.pieces):
                print("  ".join(simulated_cells(line)))
        elif not options.write:
            measure(some, folder, progress)
    finally:
        progress.close()
    found = concluded(folder)
    if options.write:
        write(found, folder)
        return
    for line in found.lines:
        print("  ".join(cells_of(line, found.lines)))
    for target in found.targets:
        print(target)


if __name__ == "__main__":
    main()
