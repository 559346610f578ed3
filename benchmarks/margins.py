"""Does the margin rank masks as the metric does? `python benchmarks/margins.py [TASK ...]`.

For every task: random masks that ablate equally many heads, the mean accuracy and the mean margin
of each over the same items, and the rank correlation of the two over the masks. The masks ablate
5 % of the heads, as those of the default search do, and 20 %.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from broca.executors.process import tune_process

tune_process()  # as the command line does, before torch

import numpy as np
from scipy.stats import spearmanr

from broca import designs
from broca.engine import Engine
from broca.executors import Asker, LocalExecutor, with_references
from broca.measurement import Plan
from broca.models import load
from broca.tasks import Catalog, RequestTokenizer, TaskOptions

SPARSITIES = (0.05, 0.2)


def correlations(model, task, *, masks, items, seed):  # type: ignore[no-untyped-def]
    """Rank correlations by sparsity and reference, and how many items have an own answer."""
    tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
    columns, kept = [], items
    for sparsity in SPARSITIES:
        design = designs.stratified(masks, len(model.components), sparsity=sparsity, seed=seed)
        for reference in ("own", "gold"):
            options = TaskOptions(reference=reference)
            benchmark = Catalog().load(task, tokenizer, options=options)
            located = benchmark.split(items=items, seed=seed).locate
            engine = Engine(model)
            found = with_references(
                engine,
                [(benchmark, benchmark.items[number]) for number in located],
                range(len(located)),
                components=len(model.components),
            )
            if reference == "own":
                kept = len(found.positions)
            plan = Plan.crossed(design, np.asarray(found.positions))
            accuracy, margin = (
                LocalExecutor(engine, Asker(found.bank, response=response)).run(plan).mask_means()
                for response in ("accuracy", "margin")
            )
            columns.append((float(spearmanr(accuracy, margin).statistic), float(accuracy.mean())))
    return columns, kept


def main() -> None:
    """Prints one line of the table of RESULTS.md for every task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--model", default="reference")
    parser.add_argument("--masks", type=int, default=40)
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    model = load(arguments.model)
    for task in arguments.tasks or Catalog().shipped:
        columns, kept = correlations(
            model, task, masks=arguments.masks, items=arguments.items, seed=arguments.seed
        )
        cells = " | ".join(f"{rho:.2f} ({mean:.2f})" for rho, mean in columns)
        print(f"| {task} | {kept} of {arguments.items} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
