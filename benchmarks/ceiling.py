"""The best five heads of each task: `python benchmarks/ceiling.py reference --out DIR`.

The search measures about 200,000 rows for each task, on items that are not `report` items. It
runs forward selection with three sets at a time, adds the best sets that any method found in a
study (`--study DIR`), and exchanges members twice. Candidates are narrowed down on few items and
compared on more. The three best sets are scored on the `report` items of seed 0, like the cells of
`benchmarks/methods.py`. Each task adds a JSON line; the same command resumes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from prepared import prepare

prepare()

import numpy as np
from numpy.typing import NDArray
from zoo.ceilings import Bench, Set, best, known_sets

import broca
from broca.options import SourceOptions
from broca.runs.task_sets import claim_tasks, load_tasks, other_tasks, whole_tasks
from broca.verification import roles

K = 5
BEAM = 3
FEW, SOME, MANY = 32, 96, 256
"""Items of the task, and about as many of the others, on which candidates are compared."""
NARROWED = 32
ITEMS, REPORT_ITEMS = 100, 120
"""The values of `benchmarks/methods.py`."""


class Judge(Bench):
    """Measures sets of heads on a task, whose number is 0, and the tasks of other capabilities.

    Args:
        run: A run on all items of the tasks.
        task: The task.
    """

    def __init__(self, run: broca.Run, task: str) -> None:
        super().__init__(run, (task, *roles(task, run.tasks.benchmarks)[1]), items=ITEMS)

    def specific(self, sets: Sequence[Set], task: int, items: int) -> NDArray[np.float64]:
        """Returns the drop of the task beyond the mean over all items of the others, `(sets,)`."""
        lost, *others_lost = self.search_losses(sets, task, items)
        return lost.mean(axis=1) - np.hstack(others_lost).mean(axis=1)

    def proven(self, members: Set) -> float:
        """Returns the specific drop of a set on the report items, as a cell has it."""
        benchmarks = {name: self.run.tasks.benchmarks[name] for name in self.names}
        tasks = claim_tasks(
            self.names[0], benchmarks, items=ITEMS, seed=0, report_items=REPORT_ITEMS
        )
        run = broca.Run(self.run.model, tasks, self.run.workspace)
        before, after = run.scores(()), run.scores(sorted(members))
        lost, *others_lost = (
            benchmark.loss(before[name], after[name]) for name, benchmark in benchmarks.items()
        )
        return lost - float(np.mean(others_lost))


def grown(judge: Judge, beam: list[Set], keep: int) -> list[Set]:
    """Returns the best of the sets and of their variants with a member more or less."""
    variants = set(beam)
    for members in beam:
        variants |= {members - {member} for member in members}
        if len(members) < K:
            variants |= {members | {column} for column in range(len(judge.components))}
    narrowed = best(judge, 0, variants - {frozenset()}, FEW, NARROWED)
    return best(judge, 0, set(narrowed), SOME, keep)


def search(judge: Judge, studied: set[Set]) -> list[Set]:
    """Returns the three best sets that the search finds."""
    beam: list[Set] = [frozenset()]
    for _ in range(K):
        beam = grown(judge, beam, BEAM)
    candidates = {*beam, *(best(judge, 0, studied, SOME, BEAM) if studied else ())}
    for _ in range(2):
        lead = best(judge, 0, candidates, SOME, BEAM)
        smaller = {members - {member} for members in lead for member in members if len(members) > 1}
        compared = best(judge, 0, smaller | set(lead), SOME, 2 * BEAM)
        candidates |= set(grown(judge, compared, 2 * BEAM))
    return best(judge, 0, candidates, MANY, 3)


def main() -> None:
    """Searches the tasks that the out folder lacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tasks", default="auto")
    parser.add_argument("--study", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    file = chosen.out / f"ceiling-{chosen.model}.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    done = {json.loads(line)["task"] for line in lines}
    model = broca.load(chosen.model)
    with broca.Workspace(chosen.out / "journal.sqlite") as workspace:
        catalog = workspace.catalog(SourceOptions())
        benchmarks = load_tasks(model, other_tasks("", "auto", model, catalog), catalog)
        run = broca.Run(model, whole_tasks(benchmarks), workspace)
        names = model.components.names
        for task in benchmarks if chosen.tasks == "auto" else chosen.tasks.split(","):
            if task in done:
                continue
            judge = Judge(run, task)
            scored = [
                {
                    "heads": [names[column] for column in sorted(members)],
                    "specific": round(judge.proven(members), 3),
                }
                for members in search(judge, known_sets(run, chosen.study, task))
            ]
            line = json.dumps({"task": task, "rows": judge.rows, "best": scored})
            with file.open("a") as lines_file:
                lines_file.write(line + "\n")


if __name__ == "__main__":
    main()
