"""Methods with equal rows, on models that none of their constants was chosen on.

    python benchmarks/zoo/equal_rows.py --out DIR [--rows 4800] [--seeds 5] [--methods M1,M2]
                                        [--models NAME,NAME] [--real SOURCE]
    python benchmarks/zoo/equal_rows.py --out DIR --write   # equal-rows.csv and README.md

The models are those of the zoo with the role `report`; `--real` adds the published model of
`real_models` with the paradigms to report. Every task of a model is localized with all its other
tasks as controls. A search has `--rows` rows in total, which methods that measure the other tasks
divide among the tasks. Cells are those of `benchmarks/methods.py` and are stored in DIR; the same
command resumes. `--write` without `--out` makes the table from `equal-rows.csv`.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from prepared import prepare

prepare()

import numpy as np
from comparison import Cell, Grid, compare, method_cells
from pages import write_between_marks

from broca import Workspace, searches
from broca.cli.progress import PrintOptions, ProgressDisplay
from broca.runs.progress import Report
from zoo import HERE, REAL_MODEL, ZooModel, read_best_drops, report_models

CELLS = HERE / "equal-rows.csv"

METHODS = (
    "pooled", "cs-fresh", "cs-stratified", "coar", "co-ablation", "gradient-masked",
    "learned-gates",
)  # fmt: skip
"""Methods that can spend as many rows as they are given."""
REPORT_ITEMS = 1000
"""Maximum number of report items of the task, and of all other tasks together."""
RESAMPLES = 2000
LEVEL = 0.9


@dataclass(frozen=True)
class Search:
    """One search of one method, as a line of `equal-rows.csv`.

    Attributes:
        model: Name of the model.
        task: The task that was localized.
        method: Name of the method.
        rows: Rows that the search was given, all tasks together.
        seed: Seed of the items and of the search.
        drop: Loss of the task on the report items; 0 if nothing was selected.
        off_target: Mean loss of the other tasks.
        selected: Number of selected components.
        spent: Rows that the search spent.
        seconds: Time from the built tasks to the scored selection.
        refused: 1 if the method refused the rows or the task.
    """

    model: str
    task: str
    method: str
    rows: int
    seed: int
    drop: float
    off_target: float
    selected: int
    spent: int
    seconds: float
    refused: int

    @property
    def specific(self) -> float:
        """The loss of the task beyond the mean loss of the others."""
        return self.drop - self.off_target

    @property
    def about(self) -> int:
        """The rows rounded down to hundreds: dividing them among tasks loses a few."""
        return self.rows - self.rows % 100


def rows_of_each(method: str, rows: int, tasks: int) -> int:
    """Returns the rows for each measured task that add up to `rows`."""
    return rows // (tasks if searches.METHODS[method].measures_others else 1)


def measure(
    entries: Sequence[ZooModel], methods: Sequence[str], rows: int, seeds: int, folder: Path,
    report: Report,
) -> None:  # fmt: skip
    """Runs the searches that the folder lacks, seed by seed; all share one journal."""
    cells = method_cells(folder)
    with Workspace(folder / "journal.sqlite") as workspace:
        for seed in range(seeds):
            for entry in entries:
                budgets = {name: rows_of_each(name, rows, len(entry.tasks)) for name in methods}
                for budget in sorted(set(budgets.values())):
                    grid = Grid(
                        [name for name in methods if budgets[name] == budget], [budget], [seed],
                        entry.tasks, entry.tasks, report_items=REPORT_ITEMS,
                        include_path=str(entry.include_path),
                    )  # fmt: skip
                    compare(str(entry.folder), grid, cells, workspace, on_progress=report)


def searches_of(cells: Iterable[Cell]) -> list[Search]:
    """Returns the searches of a folder, in the order of the table."""
    listed = []
    for cell in cells:
        key = cell.key
        assert key.budget is not None
        measured = 1 + len(key.others) if searches.METHODS[key.method].measures_others else 1
        model = f"{REAL_MODEL}-report" if cell.model.endswith(REAL_MODEL) else cell.model
        listed.append(
            Search(
                model=Path(model).name,
                task=key.task,
                method=key.method,
                rows=key.budget * measured,
                seed=key.seed,
                drop=round(cell.drop, 6),
                off_target=round(cell.off_target, 6),
                selected=len(cell.selected),
                spent=cell.rows,
                seconds=round(cell.seconds, 1),
                refused=int(not cell.done),
            )
        )
    order = {name: place for place, name in enumerate(METHODS)}
    return sorted(
        listed, key=lambda line: (line.model, line.rows, line.task, order[line.method], line.seed)
    )


def write_cells(listed: Sequence[Search], path: Path = CELLS) -> None:
    """Writes searches as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Search)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(search) for search in listed)


def read_cells(path: Path = CELLS) -> list[Search]:
    """Returns the searches that `write_cells` wrote."""
    kinds = {"str": str, "int": int, "float": float}
    types = {field.name: kinds[str(field.type)] for field in fields(Search)}
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Search(**{name: types[name](text) for name, text in line.items()})
            for line in csv.DictReader(file)
        ]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the bootstrap interval of a mean over tasks, each the mean of its seeds."""
    rng = np.random.default_rng(0)
    array = np.asarray(values)
    means = array[rng.integers(len(array), size=(RESAMPLES, len(array)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def by_task(listed: Iterable[Search]) -> dict[tuple[str, str], float]:
    """Returns the specific drop of every model's task, the mean of its seeds."""
    groups: dict[tuple[str, str], list[float]] = {}
    for search in listed:
        groups.setdefault((search.model, search.task), []).append(search.specific)
    return {task: float(np.mean(values)) for task, values in groups.items()}


def table(listed: Sequence[Search], candidate: str = searches.DEFAULT_METHOD) -> str:
    """Returns the mean specific drop of every method by model, a table for each number of rows."""
    names = list(dict.fromkeys(search.model for search in listed))
    parts = []
    for rows in sorted({search.about for search in listed}):
        of_rows = [search for search in listed if search.about == rows]
        shown = [name for name in names if any(search.model == name for search in of_rows)]
        candidate_drops = by_task(search for search in of_rows if search.method == candidate)
        head = [
            "method",
            *(f"`{name}`" for name in shown),
            "all tasks",
            f"`{candidate}` has more by (90 %)",
            "none found",
            "seconds",
            "searches",
        ]
        lines = [head, *(line_of(method, of_rows, shown, candidate_drops) for method in METHODS)]
        texts = [f"| {' | '.join(line)} |" for line in lines if line]
        texts.insert(1, f"|{'---|' * len(head)}")
        parts.append(f"\nAbout {rows:,} rows a search:\n\n" + "\n".join(texts) + "\n")
    return "".join(parts)


def line_of(
    method: str,
    listed: Sequence[Search],
    names: Sequence[str],
    candidate_drops: dict[tuple[str, str], float],
) -> list[str]:
    """Returns the cells of a method's line; none if it was not run.

    Args:
        method: Name of the method.
        listed: Searches of every method with the same rows.
        names: The models, by column.
        candidate_drops: Specific drops of the method that this one is compared with, by task.
    """
    ran = [search for search in listed if search.method == method]
    if not ran:
        return []
    done = [search for search in ran if not search.refused]
    tasks = by_task(done)
    by_model = [[value for (model, _), value in tasks.items() if model == name] for name in names]
    more = [
        candidate_drops[task] - value for task, value in tasks.items() if task in candidate_drops
    ]
    difference = ""
    if any(more):
        low, high = interval(more)
        difference = f"{np.mean(more):+.3f} ({low:+.3f} to {high:+.3f})"
    refused = f" (+{len(ran) - len(done)} refused)" if len(done) < len(ran) else ""
    return [
        method,
        *(f"{np.mean(values):.3f}" if values else "" for values in by_model),
        f"{np.mean(list(tasks.values())):.3f}" if tasks else "refused",
        difference,
        str(sum(search.selected == 0 for search in done)),
        f"{np.mean([search.seconds for search in done]):.0f}" if done else "",
        f"{len(done)}{refused}",
    ]


def best_known(listed: Sequence[Search], best_drops: dict[tuple[str, str], float]) -> str:
    """Returns the default method's share of the best sets' drops: a line for each number of rows.

    Args:
        listed: The searches.
        best_drops: Specific drop of the best set known, by model and task. A task whose best set
            has no positive one is left out.
    """
    lines = []
    for rows in sorted({search.about for search in listed}):
        drops = by_task(
            search
            for search in listed
            if search.method == searches.DEFAULT_METHOD and search.about == rows
        )
        shared = [task for task in drops if best_drops.get(task, 0.0) > 0]
        if shared:
            have = sum(drops[task] for task in shared)
            best = sum(best_drops[task] for task in shared)
            lines.append(
                f"- about {rows:,} rows: {have / best:.0%} of the best sets known, "
                f"{have / len(shared):.3f} of {best / len(shared):.3f} on {len(shared)} tasks"
            )
    return "\n".join(lines)


def section(listed: Sequence[Search], best_drops: dict[tuple[str, str], float]) -> str:
    """Returns the text of README.md between the marks."""
    return (
        f"{table(listed)}\n`{searches.DEFAULT_METHOD}` and the best sets known:\n\n"
        f"{best_known(listed, best_drops)}\n"
    )


def write(readme: Path = HERE / "README.md") -> None:
    """Writes the tables of README.md from the CSV file."""
    text = section(read_cells(), read_best_drops())
    write_between_marks(readme, "equal_rows.py", text)


def main() -> None:
    """Runs the searches, or writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder of the cells")
    parser.add_argument("--rows", type=int, default=4800, help="rows of a search, all tasks")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--models", help="names joined by commas; all to report by default")
    parser.add_argument("--real", type=Path, help="folder of the published model and its data")
    parser.add_argument("--write", action="store_true", help="write the table; run nothing")
    options = parser.parse_args()
    if options.write:
        if options.out:
            write_cells(searches_of(method_cells(options.out).read().values()))
        write()
        return
    if options.out is None:
        parser.error("--out is missing: name a folder for the cells")
    with tempfile.TemporaryDirectory() as include_path:
        entries = report_models(options.real, Path(include_path))
        if options.models:
            entries = [entry for entry in entries if entry.name in options.models.split(",")]
        progress = ProgressDisplay(PrintOptions())
        try:
            measure(
                entries, options.methods.split(","), options.rows, options.seeds, options.out,
                progress,
            )  # fmt: skip
        finally:
            progress.close()
    print(table(searches_of(method_cells(options.out).read().values())))


if __name__ == "__main__":
    main()
