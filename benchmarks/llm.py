"""Methods on a real language model: `python benchmarks/llm.py --model M --include-path TASKS ...`.

Every task that is named is localized against the others. The selected heads are then ablated by
others: transformers loads the model, the columns of their output projections are zeroed, and
lm-eval's `hf` model scores the report items. DIR keeps a line for each finished cell, so that the
same command goes on after a kill, and the rows of all searches.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from prepared import prepare

prepare()

import torch
from comparison import CellFile
from lm_eval.evaluator import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from transformers import AutoModelForCausalLM, AutoTokenizer

import broca
from broca.components import Component

REPORT_ITEMS = 100
"""Report items of each task."""


@dataclass(frozen=True)
class Key:
    """The settings of a cell: a search of a method on a task, with a budget of rows and a seed."""

    task: str
    method: str
    rows: int
    seed: int


@dataclass(frozen=True)
class Cell:
    """A search, and what others measure without the selected heads.

    Attributes:
        key: The settings.
        selected: The selected heads.
        spent: Rows that the search spent; a row with its gradient counts as three.
        seconds: Time of `localize` without a verification.
        scores: Score of every task on its report items, intact and ablated.
    """

    key: Key
    selected: tuple[str, ...]
    spent: int
    seconds: float
    scores: dict[str, tuple[float, float]]

    @property
    def specific(self) -> float:
        """Drop of the task minus the mean drop of the others."""
        drops = {task: before - after for task, (before, after) in self.scores.items()}
        others = [drop for task, drop in drops.items() if task != self.key.task]
        return drops[self.key.task] - sum(others) / len(others)


class Harness:
    """lm-eval's `hf` model, whose output projections can be zeroed.

    Args:
        model: Folder of the model.
        include_path: Folder of the tasks.
    """

    def __init__(self, model: str, include_path: str) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        self._tokenizer = AutoTokenizer.from_pretrained(model)
        self._tasks = TaskManager(include_path=include_path, include_defaults=False)
        self._intact: dict[tuple[str, tuple[int, ...]], float] = {}

    def intact(self, documents: dict[str, list[int]]) -> dict[str, float]:
        """Returns the score of each task on some documents; the same ones are measured once."""
        keys = {task: (task, tuple(ids)) for task, ids in documents.items()}
        new = {task: documents[task] for task, key in keys.items() if key not in self._intact}
        if new:
            self._intact |= {keys[task]: score for task, score in self.scores((), new).items()}
        return {task: self._intact[key] for task, key in keys.items()}

    def scores(self, heads: tuple[str, ...], documents: dict[str, list[int]]) -> dict[str, float]:
        """Returns the score of each task on some documents without some heads."""
        projections = [layer.self_attn.o_proj.weight.data for layer in self._model.model.layers]
        width = self._model.config.head_dim
        kept = {}
        for head in map(Component.parse, heads):
            columns = slice(head.index * width, (head.index + 1) * width)
            kept[head] = (columns, projections[head.layer][:, columns].clone())
            projections[head.layer][:, columns] = 0
        try:
            results = simple_evaluate(
                HFLM(self._model, tokenizer=self._tokenizer, batch_size=16),
                tasks=list(documents), samples=documents, task_manager=self._tasks,
                bootstrap_iters=0, log_samples=False,
            )["results"]  # fmt: skip
        finally:
            for head, (columns, weights) in kept.items():
                projections[head.layer][:, columns] = weights
        return {task: _score(results[task]) for task in documents}


def _score(measured: dict[str, Any]) -> float:
    """Returns the first metric of a task."""
    return next(float(v) for name, v in measured.items() if "," in name and "stderr" not in name)


def measure(key: Key, options: argparse.Namespace, tasks: list[str], harness: Harness) -> Cell:
    """Runs a cell."""
    found = broca.localize(
        options.model, task=key.task, others=[task for task in tasks if task != key.task],
        include_path=options.include_path, method=key.method, rows=key.rows, seed=key.seed,
        verify=False, journal=options.out / "rows.sqlite", device=options.device,
    )  # fmt: skip
    documents = {
        part.task: list(part.ids[:REPORT_ITEMS])
        for part in found.verification.documents
        if part.part == "report"
    }
    intact = harness.intact(documents)
    ablated = harness.scores(found.selected, documents) if found.selected else intact
    scores = {task: (intact[task], ablated[task]) for task in documents}
    return Cell(key, found.selected, found.cost.rows, found.cost.wall_s, scores)


def main() -> None:
    """Runs the missing cells and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="folder of the model")
    parser.add_argument("--include-path", required=True, help="folder of the tasks")
    parser.add_argument("--tasks", required=True, help="names, joined by commas")
    parser.add_argument("--only", help="the tasks to localize, joined by commas; default: all")
    parser.add_argument("--methods", default="pooled,cs-stratified,gradient")
    parser.add_argument("--rows", default="3000", help="budgets, joined by commas")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default=None)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    tasks = options.tasks.split(",")
    options.out.mkdir(parents=True, exist_ok=True)
    cells = CellFile(options.out / "cells.jsonl", Cell)
    harness = Harness(options.model, options.include_path)
    budgets = map(int, options.rows.split(","))
    localized = options.only.split(",") if options.only else tasks
    grid = product(localized, options.methods.split(","), budgets, range(options.seeds))
    for key in (Key(*settings) for settings in grid):
        if key not in cells.read():
            cells.add(measure(key, options, tasks, harness))
    for cell in cells.read().values():
        print(
            json.dumps(
                {
                    **asdict(cell.key),
                    "specific": round(cell.specific, 3),
                    "heads": cell.selected,
                    "spent": cell.spent,
                    "s": cell.seconds,
                }
            )
        )


if __name__ == "__main__":
    main()
