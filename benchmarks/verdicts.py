"""Errors of the failure modes: sound sets that are called broken, and broken ones that are not.

    python benchmarks/verdicts.py reference --tasks mc_biology,mc_chemistry --sets 60
    python benchmarks/verdicts.py MODEL --tasks T1,T2 --include-path TASKS

The ablated sets are random ones of 1, 3 and 5 heads, of a fifth and of half of all heads, all heads
of a layer, and all heads. A set is labelled on the `confirm` items: it is sound if the tasks keep
nine tenths of their score above chance on average, broken if none keeps more than a quarter of it,
and neither otherwise. Failure modes are counted on the `report` items, by the code of
`broca verify`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import broca
from broca.options import SourceOptions
from broca.results.verification import TaskFailures
from broca.runs.task_sets import TaskSet, lay_out, load_tasks
from broca.verification import Evidence, Scope
from broca.verification.failures import MODES
from broca.verification.verdict import BROKEN

SOUND, BROKEN_SKILL = 0.9, 0.25
"""Share of the skill that a sound set keeps on average, and a broken one at most on any task."""


def sets_of(layers: Sequence[int], random: int, seed: int) -> list[tuple[str, list[int]]]:
    """Returns kinds of sets with their columns: none, random ones, whole layers, half, and all."""
    rng = np.random.default_rng(seed)
    count = len(layers)
    sizes = {"1 head": 1, "3 heads": 3, "5 heads": 5, "a fifth": count // 5}
    sets: list[tuple[str, list[int]]] = [("none", [])]
    for kind, size in sizes.items():
        for _ in range(random // len(sizes)):
            sets.append((kind, rng.choice(count, size, replace=False).tolist()))
    for layer in sorted(set(layers)):
        sets.append(("a layer", np.flatnonzero(np.array(layers) == layer).tolist()))
    for _ in range(random // len(sizes)):
        sets.append(("half", rng.choice(count, count // 2, replace=False).tolist()))
    return [*sets, ("all", list(range(count)))]


def measure(
    model: str,
    names: Sequence[str],
    *,
    sets: int,
    items: int,
    include_path: str | None,
    seed: int,
    components: str = "heads",
) -> dict[str, object]:
    """Labels every set on `confirm` items and counts its failure modes on `report` items."""
    gated = broca.load(model, device="cpu", components=components)
    rows = []
    with broca.Workspace() as workspace:
        benchmarks = load_tasks(
            gated, names, workspace.catalog(SourceOptions(include_path=include_path))
        )
        splits = {}
        for name, benchmark in benchmarks.items():
            split = benchmark.split(items=items, seed=seed)
            splits[name] = replace(split, report=split.report[:items])
        parts = dict.fromkeys(("report", "locate", "confirm"), names)
        tasks = TaskSet(
            names[0], (), tuple(names[1:]), benchmarks, *lay_out(benchmarks, splits, parts)
        )
        run = broca.Run(gated, tasks, workspace)
        examiner = run.examiner(Scope(failure_items=items))
        intact = run.scores((), part="confirm")
        skill = {name: intact[name] - tasks.benchmarks[name].chance for name in names}
        places = tasks.places["report"]
        layers = [component.layer for component in gated.components]
        for kind, columns in sets_of(layers, sets, seed):
            scores = run.scores(columns, part="confirm")
            kept_shares = [1 - (intact[name] - scores[name]) / skill[name] for name in names]
            masks = np.stack([run.mask(()), run.mask(columns)])
            measured = examiner.trial.responses(run.measure, masks, places)
            evidence = Evidence(examiner.trial, examiner.scope, measured)
            failures, _ = examiner.outputs(columns, evidence)
            damage = float(np.mean([task.damage for task in failures]))
            rows.append({
                "kind": kind, "heads": len(columns), "kept": float(np.mean(kept_shares)),
                "label": label_of(kept_shares), "called broken": damage >= BROKEN,
                "excess": float(np.mean([task.excess for task in failures])), "damage": damage,
                "modes": {mode: _new(failures, mode) for mode in MODES},
            })  # fmt: skip
            print(json.dumps(rows[-1]), flush=True)
    return {
        "model": model,
        "tasks": list(names),
        "components": components,
        "items": items,
        **summary(rows),
    }


def label_of(kept_shares: Sequence[float]) -> str:
    """Returns the label of a set by the share of its skill that every task keeps."""
    if np.mean(np.minimum(kept_shares, 1.0)) >= SOUND:
        return "sound"
    return "broken" if max(kept_shares) <= BROKEN_SKILL else "neither"


def summary(rows: Sequence[dict[str, object]]) -> dict[str, object]:
    """Returns both errors, and the share of outputs in each mode, by label."""
    result: dict[str, object] = {}
    for label in ("sound", "neither", "broken"):
        label_rows = [row for row in rows if row["label"] == label]
        if label_rows:
            result[label] = {
                "sets": len(label_rows),
                "called broken": sum(bool(row["called broken"]) for row in label_rows),
                "degenerate alone would say": sum(row["excess"] >= BROKEN for row in label_rows),
                "modes": {
                    mode: round(float(np.mean([row["modes"][mode] for row in label_rows])), 3)
                    for mode in MODES
                },
            }
    return result


def _new(failures: Sequence[TaskFailures], mode: str) -> float:
    return float(np.mean([task.after[mode] - task.before[mode] for task in failures]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--include-path")
    parser.add_argument("--sets", type=int, default=60)
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--components", default="heads")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    result = measure(
        chosen.model, chosen.tasks.split(","), sets=chosen.sets, items=chosen.items,
        include_path=chosen.include_path, seed=chosen.seed, components=chosen.components,
    )  # fmt: skip
    print(json.dumps(result, indent=2))
