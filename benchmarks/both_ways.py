"""The share of random head sets that are called both necessary and sufficient.

    python benchmarks/both_ways.py reference-small --task sorting --sets 200 --size 5 --items 30

What each random set keeps alone is measured under zero and mean ablation; a set that is sufficient
under either is verified, and is called both if it is specific.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import numpy as np

from broca.options import RunOptions
from broca.runs.session import open_run
from broca.verification import Scope
from broca.verification.statistics import share_interval
from broca.verification.sufficiency import KeptMeasurer, pool_of


def measure(model: str, task: str, *, sets: int, size: int, items: int) -> dict[str, object]:
    """Counts what random sets keep alone, and which of them are specific too."""
    scope = Scope(controls=39, ablations=False, failure_items=10, resamples=500)
    options = RunOptions.of({"device": "cpu"})
    with open_run(model, options, task=task, others=["auto"]) as opened:
        tasks = opened.claimed(task, others="auto", items=100, seed=0, limit=items, searched="task")
        run = opened.on(tasks, settings={}, donors=tasks.located)
        components, rng = opened.model.components, np.random.default_rng(11)
        trial = tasks.trial().judged(run.scores(()))
        alone = replace(trial, others=())  # the verdict does not need the others' curves
        measurer = KeptMeasurer(
            alone, alone.places, components,
            {kind: run.under(kind).measure for kind in ("zero", "mean")}, scope,
        )  # fmt: skip
        enough, both, best = 0, 0, 0.0
        for number in range(sets):
            columns = rng.choice(len(components), size, replace=False).tolist()
            pool, beside = pool_of(components, columns), measurer.beside(columns)
            kept = [
                measurer.compared(kind, scores, *beside)
                for kind, execute in measurer.kinds.items()
                if (scores := measurer.scores(task, [beside[0], *beside[1]], pool, execute))
            ]
            best = max([best, *(line.kept.value for line in kept)])
            if any(line.sufficient for line in kept):
                enough += 1
                heads = [components.names[column] for column in columns]
                verdict = run.examiner(scope).examine(heads, report=lambda text: None).verdict
                both += verdict.label == "specific"
                print(number, heads, verdict.label, flush=True)
    return {
        "model": model, "task": task, "sets": sets, "size": size, "items": items,
        "sufficient": enough, "both": both, "most_kept": best,
        "both_at_most": share_interval(both, sets, level=0.1)[1],
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--task", default="sorting")
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--size", type=int, default=5)
    parser.add_argument("--items", type=int, default=30)
    chosen = vars(parser.parse_args())
    print(json.dumps(measure(chosen.pop("model"), chosen.pop("task"), **chosen), indent=2))
