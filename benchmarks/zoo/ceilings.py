"""The best sets known in the zoo: `python benchmarks/zoo/ceilings.py [MODEL ...] [--study DIR]`.

For every model, the drop of every single head on each task is measured. The candidates for the best
set of a task are all sets of up to `--largest` heads, in models of at most 32 heads; the sets of
forward selection by specific drop, two sets at a time, with one round of exchanges; and the best
sets that any method found in a study of `benchmarks/methods.py`.

Sets of up to five heads are compared on items that are not `report` items (seed 0): candidates are
narrowed down on few items, newly drawn each time, and compared on more. The best set is measured on
all `report` items. Results are added to `ceilings.json` task by task; the same command resumes.

`--real DIR` adds the published model of `real_models`, whose results go to `--out` as well.
`--write` writes the tables of README.md from the file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from prepared import prepare

prepare()

import numpy as np
from comparison import method_cells
from numpy.typing import NDArray
from pages import write_between_marks

import broca
from broca.measurement import Plan
from broca.options import SourceOptions
from broca.results.files import write_beside
from broca.runs.task_sets import load_tasks, whole_tasks
from zoo import HERE, models, real_models

K = 5
BEAM = 2
EXHAUSTED = 32
"""Maximum heads of a model whose sets of up to `--largest` heads are all tried."""
FEW, SOME, MANY = 16, 64, 200
"""Items of the task, and about as many of the others, on which sets are compared."""
SINGLE, ALL_SETS = 100, 8
"""Items of every task on which single heads, and all sets of a small model, are tried."""
NARROWED, PROMISING = 8, 64
"""Number of sets compared on SOME items, and of promising small sets compared on FEW."""
STUDIED = 24
"""Number of a study's best sets that are compared."""
POINTS, LEAST = 0.03, 0.1
"""Drop above which a head has an effect, and least drop of a set with a stated redundancy."""
Set = frozenset[int]


@dataclass(frozen=True)
class Value:
    """The cost of a set on report items.

    Attributes:
        drop: Loss of the task's score.
        off_target: Mean loss of the others' scores.
        standard_error: Standard error of `drop - off_target` over items.
    """

    drop: float
    off_target: float
    standard_error: float


class Bench:
    """Measures sets of heads on the items of tasks.

    Args:
        run: A run on all items of the tasks.
        names: Names of the tasks; a task's number is its position here.
        items: Maximum number of a task's `locate` items, and of its `confirm` items. Both are the
            search items; None takes all.
    """

    def __init__(self, run: broca.Run, names: Sequence[str], *, items: int | None = None) -> None:
        self.run = run
        self.names = names
        self.components = run.model.components
        self.rows = 0
        self._rng = np.random.default_rng(0)
        self._search, self._report = [], []
        for name in names:
            places = run.tasks.places["report"][name]
            split = run.tasks.benchmarks[name].split(items=items or len(places), seed=0)
            self._search.append(places[[*split.locate, *split.confirm]])
            self._report.append(places[list(split.report)])

    def losses(self, sets: Sequence[Set], items: int) -> NDArray[np.float64]:
        """Returns the mean loss of every task on newly drawn search items, `(sets, tasks)`."""
        drawn = [self._rng.permutation(places)[:items] for places in self._search]
        return means(self._lost(sets, drawn))

    def specific(self, sets: Sequence[Set], task: int, items: int) -> NDArray[np.float64]:
        """Returns the specific drop of sets on newly drawn search items, `(sets,)`.

        Args:
            sets: The sets.
            task: Number of the task.
            items: Items of the task, and about as many of all others together.
        """
        return specific_drops(means(self.search_losses(sets, task, items)))[:, task]

    def search_losses(
        self, sets: Sequence[Set], task: int, items: int
    ) -> list[NDArray[np.float64]]:
        """Returns the losses whose means `specific` compares, `(sets, items)` for each task."""
        share = -(-items // (len(self.names) - 1))
        drawn = [
            self._rng.permutation(places)[: items if number == task else share]
            for number, places in enumerate(self._search)
        ]
        return self._lost(sets, drawn)

    def value(self, members: Set, task: int) -> Value:
        """Returns the cost of a set on all report items."""
        lost = [rows[0] for rows in self._lost([members], self._report)]
        others = [rows for number, rows in enumerate(lost) if number != task]
        errors = [rows.var(ddof=1) / len(rows) for rows in others]
        variance = lost[task].var(ddof=1) / len(lost[task]) + sum(errors) / len(others) ** 2
        off_target = float(np.mean([rows.mean() for rows in others]))
        return Value(float(lost[task].mean()), off_target, float(np.sqrt(variance)))

    def alone(self, members: Set, task: int) -> float:
        """Returns the sum of the members' single drops on report items."""
        if not members:
            return 0.0
        singles = [frozenset([member]) for member in members]
        return float(self._lost(singles, [self._report[task]])[0].mean(1).sum())

    def _lost(
        self, sets: Sequence[Set], drawn: list[NDArray[np.intp]]
    ) -> list[NDArray[np.float64]]:
        """Returns the loss of every item under every set, `(sets, items)` for each task."""
        masks = np.zeros((len(sets) + 1, len(self.components)), dtype=bool)
        for mask, members in zip(masks[1:], sets, strict=True):
            mask[list(members)] = True
        plan = Plan.crossed(masks, np.concatenate(drawn))
        self.rows += len(plan)
        scores = self.run.measure(plan, role="search").responses.reshape(len(masks), -1)
        ends = np.cumsum([len(places) for places in drawn])[:-1]
        return np.split((scores[:1] - scores[1:]).astype(np.float64), ends, axis=1)


def means(losses: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Returns the mean losses over items, `(sets, tasks)`, from `(sets, items)` for each task."""
    return np.stack([lost.mean(axis=1) for lost in losses], axis=1)


def specific_drops(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the loss of each task beyond the mean loss of the others, `(sets, tasks)`."""
    count = losses.shape[1]
    others: NDArray[np.float64] = (losses.sum(axis=1, keepdims=True) - losses) / (count - 1)
    return losses - others


def best(bench: Bench, task: int, sets: set[Set], items: int, keep: int) -> list[Set]:
    """Returns the best sets on newly drawn items, the best first."""
    rated = sorted(sets, key=sorted)
    order = np.argsort(-bench.specific(rated, task, items), kind="stable")
    return [rated[place] for place in order[:keep]]


def grown(bench: Bench, task: int, beam: list[Set]) -> list[Set]:
    """Returns the best sets that have one member more."""
    larger = {members | {column} for members in beam for column in range(len(bench.components))}
    larger = {members for members in larger if len(members) <= K} - set(beam)
    narrowed = best(bench, task, larger, FEW, NARROWED)
    return best(bench, task, set(narrowed), SOME, BEAM)


def forward(bench: Bench, task: int) -> set[Set]:
    """Returns the sets of forward selection up to K heads and of one round of exchanges."""
    beam: list[Set] = [frozenset()]
    candidates: set[Set] = set()
    for _ in range(K):
        beam = grown(bench, task, beam)
        candidates |= set(beam)
    lead = best(bench, task, candidates, SOME, 1)[0]
    if len(lead) > 1:
        smaller = best(bench, task, {lead - {member} for member in lead}, SOME, BEAM)
        candidates |= {*smaller, *grown(bench, task, smaller)}
    return candidates


def exhaustive(bench: Bench, largest: int) -> list[set[Set]]:
    """Returns the most promising sets of up to `largest` heads by task; none in a large model."""
    heads = range(len(bench.components))
    if len(heads) > EXHAUSTED:
        return [set() for _ in bench.names]
    sizes = range(1, largest + 1)
    sets = [frozenset(members) for size in sizes for members in combinations(heads, size)]
    rated = specific_drops(bench.losses(sets, ALL_SETS))
    orders = np.argsort(-rated, axis=0, kind="stable")[:PROMISING].T
    return [{sets[place] for place in order} for order in orders]


def known_sets(run: broca.Run, study: Path | None, task: str) -> set[Set]:
    """Returns the best sets that any method selected for a task in a study."""
    if study is None:
        return set()
    cells = [
        cell
        for cell in method_cells(study).read().values()
        if (cell.key.fingerprint, cell.key.task) == (run.model.fingerprint, task) and cell.selected
    ]
    cells.sort(key=lambda cell: (-cell.specific, str(cell.key)))
    return {frozenset(run.model.components.columns(cell.selected)) for cell in cells[:STUDIED]}


def effects_of(bench: Bench) -> dict[str, dict[str, Any]]:
    """Returns figures on the distribution of single heads' effects, for every task."""
    names = bench.components.names
    singles = [frozenset([column]) for column in range(len(names))]
    drops = bench.losses(singles, SINGLE)
    return {
        task: {
            "share_with_effect": round(float((lost > POINTS).mean()), 3),
            "largest_drop": round(float(lost.max()), 3),
            "largest_head": names[int(lost.argmax())],
        }
        for task, lost in zip(bench.names, drops.T, strict=True)
    }


def redundancy(drop: float, alone: float) -> float | None:
    """Returns the share of a set's drop that its members' single drops do not account for.

    Args:
        drop: Drop of the set.
        alone: Sum of the drops of its members, each ablated alone.

    Returns:
        A share from 0 (the single drops make up the set's, or more) to 1 (no member costs anything
        alone); None where the drop is too small to be divided by.
    """
    if drop < LEAST:
        return None
    return round(min(1.0, max(0.0, 1 - alone / drop)), 3)


def ceiling_of(bench: Bench, task: int, sources: dict[str, set[Set]]) -> dict[str, Any]:
    """Returns the best set of a task, chosen on search items and measured on report items."""
    start, rows = time.perf_counter(), bench.rows
    sources = {**sources, "forward selection": forward(bench, task)}
    candidates: set[Set] = set().union(*sources.values())
    finalists = best(
        bench, task, set(best(bench, task, candidates, FEW, PROMISING)), SOME, NARROWED
    )
    (chosen,) = best(bench, task, {frozenset(), *finalists}, MANY, 1)
    value = bench.value(chosen, task)
    alone = bench.alone(chosen, task)
    return {
        "heads": [bench.components.names[column] for column in sorted(chosen)],
        "specific_drop": round(value.drop - value.off_target, 3),
        "standard_error": round(value.standard_error, 3),
        "drop": round(value.drop, 3),
        "off_target_drop": round(value.off_target, 3),
        "drops_alone": round(alone, 3),
        "redundancy": redundancy(value.drop, alone),
        "found_by": [name for name, sets in sources.items() if chosen in sets],
        "rows": bench.rows - rows,
        "seconds": round(time.perf_counter() - start),
    }


def tables(content: dict[str, Any]) -> str:
    """Returns the tables of README.md: the zoo's models, and the best sets known.

    Args:
        content: Content of `ceilings.json`.
    """
    overview = [
        "| model | for | heads | scores | heads with an effect | largest drop of a head |",
        "|---|---|---|---|---|---|",
    ]
    sets = [
        "| model | task | best set known | specific drop | off target | redundancy | rows |",
        "|---|---|---|---|---|---|---|",
    ]
    zoo = list(models())
    for entry in zoo:
        card = json.loads((entry.folder / "card.json").read_text(encoding="utf-8"))
        results = {"effects": {}, "ceilings": {}} | content.get(entry.name, {})
        effects = list(results["effects"].values())
        scores = ", ".join(f"{plain(task)} {card['scores'][task]:.2f}" for task in entry.tasks)
        distribution = "not measured | not measured"
        if effects:
            share = np.mean([effect["share_with_effect"] for effect in effects])
            largest = max(effects, key=lambda effect: effect["largest_drop"])
            distribution = (
                f"{share:.0%} | {largest['largest_drop']:.2f} ({largest['largest_head']})"
            )
        overview.append(
            f"| `{entry.name}` | {entry.role} | {card['heads']} | {scores} | {distribution} |"
        )
        for task in entry.tasks:
            row = [f"`{entry.name}`", plain(task), *ceiling_cells(results["ceilings"].get(task))]
            sets.append(f"| {' | '.join(row)} |")
    published = set(content) - {entry.name for entry in zoo}
    for name in sorted(published):
        for task, ceiling in content[name].get("ceilings", {}).items():
            sets.append(f"| {' | '.join([f'`{name}`', plain(task), *ceiling_cells(ceiling)])} |")
    return "\n".join([*overview, "", *sets])


def ceiling_cells(ceiling: dict[str, Any] | None) -> list[str]:
    """Returns the cells of a task's row."""
    if ceiling is None:
        return ["not searched", *4 * [""]]
    return [
        ", ".join(ceiling["heads"]) or "none",
        f"{ceiling['specific_drop']:.3f} ± {1.96 * ceiling['standard_error']:.3f}",
        f"{ceiling['off_target_drop']:.3f}",
        "" if ceiling["redundancy"] is None else f"{ceiling['redundancy']:.2f}",
        f"{ceiling['rows']:,}",
    ]


def plain(task: str) -> str:
    """Returns a task's name without the zoo's prefix."""
    return task.removeprefix("zoo_").replace("_", " ")


def main() -> None:
    """Finds the ceilings that the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="MODEL", help="models; all by default")
    parser.add_argument("--study", type=Path, help="folder of a study with cells of these models")
    parser.add_argument("--real", type=Path, help="folder of the published model and its data")
    parser.add_argument("--out", type=Path, default=HERE / "ceilings.json")
    parser.add_argument("--tasks", help="names joined by commas; all by default")
    parser.add_argument(
        "--largest", type=int, default=2, help="size up to which all sets are tried"
    )
    parser.add_argument("--write", action="store_true", help="only write README.md's tables")
    options = parser.parse_args()
    content = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.write:
        write_between_marks(HERE / "README.md", "ceilings.py", tables(content))
        return
    with tempfile.TemporaryDirectory() as folder, broca.Workspace() as workspace:
        entries = list(models())
        if options.real is not None:
            entries += real_models(options.real, Path(folder))
        for entry in entries:
            if options.names and entry.name not in options.names:
                continue
            names = options.tasks.split(",") if options.tasks else entry.tasks
            results = content.setdefault(entry.name, {"role": entry.role})
            missing = [name for name in names if name not in results.get("ceilings", {})]
            if not missing:
                continue
            model = broca.load(str(entry.folder))
            catalog = workspace.catalog(SourceOptions(include_path=entry.include_path))
            tasks = whole_tasks(load_tasks(model, entry.tasks, catalog))
            bench = Bench(broca.Run(model, tasks, workspace), entry.tasks)
            if "effects" not in results:
                results["effects"] = effects_of(bench)
                write_beside(options.out, json.dumps(content, indent=2) + "\n")
            small = exhaustive(bench, options.largest)
            for name in missing:
                task = entry.tasks.index(name)
                studied = known_sets(bench.run, options.study, name)
                sources = {f"all sets of up to {options.largest}": small[task], "study": studied}
                results.setdefault("ceilings", {})[name] = ceiling_of(bench, task, sources)
                print(entry.name, name, json.dumps(results["ceilings"][name]), flush=True)
                write_beside(options.out, json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
