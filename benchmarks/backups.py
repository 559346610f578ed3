"""Recall of all members of all sets, on a model whose heads have planted backups.

    python benchmarks/backups.py --seeds 5

Of two tasks of `zoo/backups` one set answers every question, and another takes over without it
where the question is easy (`training/train_backups.py`). A member is found if it is in the
selection or in a set that `alternatives` adds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import broca

ZOO = Path(__file__).parent / "zoo"
MODEL = ZOO / "backups"
PLANTED: dict[str, list[list[str]]] = json.loads((MODEL / "training.json").read_text())["backups"]
"""By task, the set that answers and the set that takes over."""


def searched(seeds: range, *, rows: int, k: int, alternatives: int) -> Iterator[dict[str, object]]:
    """Yields for each task and seed the share of planted members found, and what was found."""
    with broca.Workspace() as workspace:
        model = broca.load(MODEL, device="cpu")
        for task, (first, second) in PLANTED.items():
            others = [name for name in (*PLANTED, "zoo_copying") if name != task]
            for seed in seeds:
                found = broca.localize(
                    model, task, others=others, include_path=ZOO / "tasks", k=k, rows=rows,
                    alternatives=alternatives, seed=seed, journal=workspace,
                )  # fmt: skip
                sets = [found.selected, *(line.heads for line in found.alternatives)]
                named, planted = {head for one in sets for head in one}, {*first, *second}
                takes_over = {line.head for line in found.backups}
                yield {
                    "task": task, "seed": seed, "sets": sets,
                    "recall": len(planted & named) / len(planted),
                    "precision": len(planted & named) / max(1, len(named)),
                    "takes_over": sorted(takes_over),
                    "backups_recall": len(takes_over & {*second}) / len(second),
                    "backups_precision": len(takes_over & {*second}) / max(1, len(takes_over)),
                    "rows": found.cost.rows + found.cost.verification_rows,
                    "alternatives_rows": sum(line.rows for line in found.alternatives),
                }  # fmt: skip


def main() -> None:
    """Prints a line for each search, and the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--alternatives", type=int, default=2)
    chosen = vars(parser.parse_args())
    lines = []
    for line in searched(range(chosen.pop("seeds")), **chosen):
        print(json.dumps(line), flush=True)
        lines.append(line)
    for key in ("recall", "precision", "backups_recall"):
        print(f"{key} {sum(line[key] for line in lines) / len(lines):.3f}")


if __name__ == "__main__":
    main()
