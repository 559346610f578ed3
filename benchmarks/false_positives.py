"""The share of random head sets that are called specific, and the rows of their verification.

    python benchmarks/false_positives.py planted --task addition --sets 200 --size 5
    python benchmarks/false_positives.py MODEL --task T --others A,B --include-path TASKS

Every random set is verified like a claimed one. A set is never specific if its drop is not
significant, or if the other tasks lose more than a quarter as much on average; only the remaining
sets are examined in full.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from contextlib import ExitStack

import numpy as np

from broca.options import RunOptions
from broca.runs.session import open_run
from broca.verification import Scope
from broca.verification.verdict import SPILL


def measure(
    model: str,
    task: str,
    *,
    others: str | list[str],
    include_path: str | None,
    sets: int,
    size: int,
    items: int,
    seed: int = 0,
) -> dict[str, object]:
    """Verifies random sets and counts the verdicts."""
    scope = Scope(control_items=items, member_items=items, ablations=False, failure_items=20)
    options = RunOptions.of({"include_path": include_path, "device": "cpu"})
    opened = ExitStack()
    run = opened.enter_context(open_run(model, options, task=task, others=[others]))
    gated = run.model
    tasks = run.claimed(task, others=others, items=100, seed=0, limit=items, searched="task")
    examiner = run.on(tasks, settings={}).examiner(scope)
    rng = np.random.default_rng([seed, 7])
    verdicts: Counter[str] = Counter()
    specific = []
    for number in range(sets):
        columns = rng.choice(len(gated.components), size, replace=False)
        heads = [gated.components.names[column] for column in columns]
        (lost,) = examiner.drops_of(heads, [task])
        if lost.p > scope.level or lost.drop <= 0:
            verdicts["no drop"] += 1
            continue
        others = examiner.drops_of(heads, tasks.others)
        trial = examiner.trial.judged(
            {line.task: line.before for line in (lost, *others)}
            | dict.fromkeys(tasks.same_skill, 1.0)
        )
        lines = (lost, *others)
        losses = {line.task: trial.lost_skill(line.task, line.before, line.after) for line in lines}
        mean, _ = trial.specific(np.array([losses[name] for name in (task, *trial.others)]))
        if mean > SPILL * lost.drop:
            verdicts["others lose more than a quarter"] += 1
            continue
        verdict = examiner.examine(heads, report=lambda text: None).verdict
        verdicts[verdict.label] += 1
        if verdict.label == "specific":
            specific.append({"heads": heads, "text": verdict.text})
        print(number, verdict.label, flush=True)
    opened.close()
    return {
        "model": model,
        "task": task,
        "sets": sets,
        "size": size,
        "items": items,
        "verdicts": dict(verdicts),
        "specific_share": verdicts["specific"] / sets,
        "specific": specific,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--task", default="addition")
    parser.add_argument("--others", help="names, joined by commas; by default all shipped tasks")
    parser.add_argument("--include-path", help="folder of the tasks")
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--size", type=int, default=5)
    parser.add_argument("--items", type=int, default=100)
    chosen = parser.parse_args()
    result = measure(
        chosen.model,
        chosen.task,
        others=chosen.others.split(",") if chosen.others else "auto",
        include_path=chosen.include_path,
        sets=chosen.sets,
        size=chosen.size,
        items=chosen.items,
    )
    print(json.dumps(result, indent=2))
