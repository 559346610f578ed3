"""Rank correlation of margin and metric over masks: `python benchmarks/margins.py [TASK ...]`.

For every task, random masks ablate equally many heads. The rank correlation over the masks is that
of their mean accuracy and their mean margin on the same items. The masks ablate 5 % of the heads,
like those of the default search, and 20 %.
"""

from __future__ import annotations

import argparse

from prepared import prepare

prepare()

import numpy as np
from scipy.stats import spearmanr

import broca
from broca import designs
from broca.measurement import Plan
from broca.models import GatedModel
from broca.options import SourceOptions
from broca.runs.task_sets import equal_tasks, load_tasks
from broca.tasks import TaskOptions

SPARSITIES = (0.05, 0.2)


def correlations(
    model: GatedModel, task: str, workspace: broca.Workspace, *, masks: int, items: int, seed: int
) -> tuple[list[tuple[float, float]], int]:
    """Returns rank correlations by sparsity and reference, and the number of own answers."""
    catalog = workspace.catalog(SourceOptions())
    columns, answered = [], items
    for sparsity in SPARSITIES:
        design = designs.stratified(masks, len(model.components), sparsity=sparsity, seed=seed)
        for reference in ("own", "gold"):
            options = TaskOptions(reference=reference)
            benchmarks = load_tasks(model, [task], catalog, options=options)
            run = broca.Run(
                model,
                equal_tasks(benchmarks, "locate", items=items, seed=seed, limit=None),
                workspace,
            )
            located = run.tasks.places["locate"]
            places = run.referenced("margin", located, otherwise=None).places[task]
            if reference == "own":
                answered = len(places)
            accuracy, margin = (
                run.measure(Plan.crossed(design, places, response=response)).mask_means()
                for response in ("accuracy", "margin")
            )
            rank = float(spearmanr(accuracy, margin).statistic)
            columns.append((rank, float(np.mean(accuracy))))
    return columns, answered


def main() -> None:
    """Prints a line of the table of RESULTS.md for every task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--model", default="reference")
    parser.add_argument("--masks", type=int, default=40)
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    model = broca.load(arguments.model)
    with broca.Workspace() as workspace:
        for task in arguments.tasks or workspace.catalog(SourceOptions()).shipped:
            columns, answered = correlations(
                model, task, workspace, masks=arguments.masks, items=arguments.items,
                seed=arguments.seed,
            )  # fmt: skip
            cells = " | ".join(f"{rho:.2f} ({mean:.2f})" for rho, mean in columns)
            print(f"| {task} | {answered} of {arguments.items} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
