"""What the best five heads of a task are worth: `python benchmarks/ceiling.py reference --out DIR`.

A search with some 200,000 rows a task, on all items that are not `report` items: forward selection
from nothing with three sets at a time, and from the best sets that any method found in a study
(`--study DIR/methods.jsonl`); then members leave and others come in, twice. Candidates are narrowed
down on few items and compared on more. The three best are scored on the `report` items of seed 0,
as the cells of `broca bench methods` are. One JSON line a task; the same command goes on.
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

from broca.measurement import Plan
from broca.models import load
from broca.studies.methods import Arena

K = 5
BEAM = 3
FEW, SOME, MANY = 32, 96, 256
"""Items of the task, and about as many of the others, on which candidates are compared."""
NARROWED = 32
Set = frozenset[int]


class Judge:
    """Scores sets of one task on items drawn anew each time.

    Args:
        arena: The model and its tasks.
        task: The task.
    """

    def __init__(self, arena: Arena, task: str) -> None:
        self.rows = 0
        self._run = arena.executor("accuracy").run
        self.components = len(arena.model.components)
        self._rng = np.random.default_rng(0)
        self._own, *self._others = (
            np.array([*cut.locate, *cut.confirm])
            for cut in (arena.split(name, 0) for name in (task, *arena.others(task)))
        )

    def specific(self, sets: list[Set], items: int) -> np.ndarray:
        """What every set costs the task beyond the others, `(sets,)`."""
        own = self._rng.permutation(self._own)[:items]
        each = -(-items // len(self._others))
        others = np.concatenate([self._rng.permutation(one)[:each] for one in self._others])
        masks = np.zeros((len(sets) + 1, self.components), dtype=bool)
        for mask, members in zip(masks[1:], sets, strict=True):
            mask[list(members)] = True
        plan = Plan.crossed(masks, np.concatenate([own, others]))
        self.rows += len(plan)
        scores = self._run(plan).responses.reshape(len(masks), -1)
        lost = scores[0] - scores[1:]
        worth: np.ndarray = lost[:, : len(own)].mean(axis=1) - lost[:, len(own) :].mean(axis=1)
        return worth

    def best(self, sets: set[Set], items: int, keep: int) -> list[Set]:
        """The best sets on fresh items."""
        rated = sorted((one for one in sets if one), key=sorted)
        order = np.argsort(-self.specific(rated, items), kind="stable")
        return [rated[place] for place in order[:keep]]

    def grown(self, beam: list[Set], keep: int) -> list[Set]:
        """The best of the sets and of what they are with a member more or less."""
        around = set(beam)
        for members in beam:
            around |= {members - {one} for one in members}
            if len(members) < K:
                around |= {members | {one} for one in range(self.components)}
        rated = self.best(around, FEW, NARROWED)
        return self.best(set(rated), SOME, keep)


def search(judge: Judge, known: set[Set]) -> list[Set]:
    """The three best sets that the search finds."""
    beam: list[Set] = [frozenset()]
    for _ in range(K):
        beam = judge.grown(beam, BEAM)
    found = {*beam, *(judge.best(known, SOME, BEAM) if known else ())}
    for _ in range(2):
        lead = judge.best(found, SOME, BEAM)
        smaller = {one - {member} for one in lead for member in one if len(one) > 1}
        found |= set(judge.grown(judge.best(smaller | set(lead), SOME, 2 * BEAM), 2 * BEAM))
    return judge.best(found, MANY, 3)


def known_sets(arena: Arena, study: Path | None, model: str, task: str, most: int) -> set[Set]:
    """The best sets that any method found for a task in a study."""
    if study is None:
        return set()
    columns = {name: column for column, name in enumerate(arena.model.components.names)}
    cells = [json.loads(line) for line in study.read_text().splitlines()]
    cells = [one for one in cells if one["model"] == model and one["key"]["task"] == task]
    cells = [one for one in cells if not one["refused"] and one["selected"]]
    cells.sort(key=lambda one: -one["specific"])
    return {frozenset(columns[name] for name in one["selected"]) for one in cells[:most]}


def main() -> None:
    """Searches the tasks that the out folder lacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tasks", default="auto")
    parser.add_argument("--study", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    kept = chosen.out / f"ceiling-{chosen.model}.jsonl"
    lines = kept.read_text().splitlines() if kept.exists() else []
    done = {json.loads(line)["task"] for line in lines}
    tasks = chosen.tasks if chosen.tasks == "auto" else tuple(chosen.tasks.split(","))
    arena = Arena.build(load(chosen.model), tasks=tasks, report_items=120)
    names = arena.model.components.names
    for task in arena.names:
        if task in done:
            continue
        judge = Judge(arena, task)
        best = search(judge, known_sets(arena, chosen.study, chosen.model, task, 24))
        scored = [
            {
                "heads": [names[one] for one in sorted(members)],
                "specific": round(arena.prove(task, sorted(members), seed=0).specific_drop, 3),
            }
            for members in best
        ]
        line = json.dumps({"task": task, "rows": judge.rows, "best": scored})
        with kept.open("a") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
