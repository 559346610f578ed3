"""The best five heads of each task: `python benchmarks/ceiling.py reference --out DIR`.

The search measures about 200,000 rows for each task, on all items that are not `report` items. It
runs forward selection with three sets at a time, adds the best sets that any method found in a
study (`--study DIR`), and exchanges members twice. Candidates are narrowed down on few items and
compared on more. The three best sets are scored on the `report` items of seed 0, like the cells of
`broca bench methods`. Each task adds a JSON line; the same command resumes.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from broca.executors.process import tune_process

tune_process()  # as the command line does, before torch

import numpy as np

import broca
from broca.measurement import Plan
from broca.options import SourceOptions
from broca.runs.task_sets import claim_tasks, load_tasks, other_tasks, whole_tasks
from broca.studies.methods import method_cells
from broca.verification import roles
from broca.verification.proof import prove

K = 5
BEAM = 3
FEW, SOME, MANY = 32, 96, 256
"""Items of the task, and about as many of the others, on which candidates are compared."""
NARROWED = 32
ITEMS, REPORT_ITEMS = 100, 120
"""The values of `benchmarks/methods.py`."""
Set = frozenset[int]


class Judge:
    """Scores sets of one task on newly drawn items.

    Args:
        run: A run on all items of the tasks.
        task: The task.
    """

    def __init__(self, run: broca.Run, task: str) -> None:
        self.rows = 0
        self._run = run
        self.components = len(run.model.components)
        self._rng = np.random.default_rng(0)
        self.names = (task, *roles(task, run.tasks.benchmarks)[1])
        self._task_items, *self._others_items = (self._searched(name) for name in self.names)

    def _searched(self, name: str) -> np.ndarray:
        """Returns the positions of the items of a task that are not `report` items."""
        split = self._run.tasks.benchmarks[name].split(items=ITEMS, seed=0)
        return self._run.tasks.places["report"][name][[*split.locate, *split.confirm]]

    def specific(self, sets: list[Set], items: int) -> np.ndarray:
        """Returns the specific drop of every set, `(sets,)`."""
        task_items = self._rng.permutation(self._task_items)[:items]
        share = -(-items // len(self._others_items))
        others = np.concatenate([self._rng.permutation(o)[:share] for o in self._others_items])
        masks = np.zeros((len(sets) + 1, self.components), dtype=bool)
        for mask, members in zip(masks[1:], sets, strict=True):
            mask[list(members)] = True
        plan = Plan.crossed(masks, np.concatenate([task_items, others]))
        self.rows += len(plan)
        scores = self._run.measure(plan, role="search").responses.reshape(len(masks), -1)
        lost = scores[0] - scores[1:]
        count = len(task_items)
        worth: np.ndarray = lost[:, :count].mean(axis=1) - lost[:, count:].mean(axis=1)
        return worth

    def proven(self, members: Set) -> float:
        """Returns the specific drop of a set on the report items, as a cell has it."""
        benchmarks = {name: self._run.tasks.benchmarks[name] for name in self.names}
        tasks = claim_tasks(
            self.names[0], benchmarks, items=ITEMS, seed=0, report_items=REPORT_ITEMS
        )
        run = broca.Run(self._run.model, tasks, self._run.workspace)
        before, after = run.scores(()), run.scores(sorted(members))
        return prove(self.names[0], benchmarks, before, after).specific_drop

    def best(self, sets: set[Set], items: int, keep: int) -> list[Set]:
        """Returns the best sets on newly drawn items."""
        rated = sorted((members for members in sets if members), key=sorted)
        order = np.argsort(-self.specific(rated, items), kind="stable")
        return [rated[place] for place in order[:keep]]

    def grown(self, beam: list[Set], keep: int) -> list[Set]:
        """Returns the best of the sets and of their variants with a member more or less."""
        around = set(beam)
        for members in beam:
            around |= {members - {member} for member in members}
            if len(members) < K:
                around |= {members | {column} for column in range(self.components)}
        rated = self.best(around, FEW, NARROWED)
        return self.best(set(rated), SOME, keep)


def search(judge: Judge, studied: set[Set]) -> list[Set]:
    """Returns the three best sets that the search finds."""
    beam: list[Set] = [frozenset()]
    for _ in range(K):
        beam = judge.grown(beam, BEAM)
    candidates = {*beam, *(judge.best(studied, SOME, BEAM) if studied else ())}
    for _ in range(2):
        lead = judge.best(candidates, SOME, BEAM)
        smaller = {members - {member} for members in lead for member in members if len(members) > 1}
        candidates |= set(judge.grown(judge.best(smaller | set(lead), SOME, 2 * BEAM), 2 * BEAM))
    return judge.best(candidates, MANY, 3)


def known_sets(run: broca.Run, study: Path | None, task: str, most: int) -> set[Set]:
    """Returns the best sets that any method found for a task in a study."""
    if study is None:
        return set()
    cells = [
        cell
        for cell in method_cells(study).read()
        if (cell.key.fingerprint, cell.key.task) == (run.model.fingerprint, task) and cell.selected
    ]
    cells.sort(key=lambda cell: (-cell.specific, cell.key.name))
    return {frozenset(run.model.components.columns(cell.selected)) for cell in cells[:most]}


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
            best = search(judge, known_sets(run, chosen.study, task, 24))
            scored = [
                {
                    "heads": [names[column] for column in sorted(members)],
                    "specific": round(judge.proven(members), 3),
                }
                for members in best
            ]
            line = json.dumps({"task": task, "rows": judge.rows, "best": scored})
            with file.open("a") as lines_file:
                lines_file.write(line + "\n")


if __name__ == "__main__":
    main()
