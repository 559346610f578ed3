"""The share of claims that hold on fresh items, under another ablation, and in other words.

python benchmarks/replications.py docs/claims --seeds 2 --rows 10000
python benchmarks/replications.py FOLDER --model MODEL --include-path TASKS --wordings A,B
python benchmarks/replications.py FOLDER --make planted --tasks capitals,sorting --searches 3

The third searches first, with three seeds, and fills the folder with what can be claimed.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from itertools import product
from pathlib import Path

import broca
from broca.errors import BrocaError
from broca.results.files import encode
from broca.tasks import listed
from broca.verification.statistics import share_interval


def make(folder: Path, models: list[str], tasks: list[str], *, searches: int, rows: int) -> None:
    """Searches tasks of models with several seeds, and writes what can be claimed."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, model, task in product(range(searches), models, tasks):
        name = f"{model}-{task}-{seed}"
        try:
            found = broca.localize(model, task, rows=rows, seed=seed)
            (folder / f"{name}.json").write_text(encode(broca.Claim.of(found)))
        except BrocaError as error:
            print(f"{name}: {error}", flush=True)


def measure(folder: Path, **options: object) -> dict[str, object]:
    """Replicates all claims of a folder and counts, by respect and verdict, what held."""
    counts: dict[str, list[bool | None]] = defaultdict(list)
    answers = {}
    for file in sorted(folder.glob("*.json")):
        found = broca.replicate(str(file), **options)
        answers[file.stem] = found.headline
        print(found.headline, flush=True)
        for replica in found.replicas:
            counts[f"{replica.respect}, {found.claim.verdict.label}"].append(replica.held)
    shares = {
        respect: {
            "held": held.count(True), "not held": held.count(False), "untold": held.count(None),
            "interval": share_interval(held.count(True), len(held) - held.count(None)),
        }
        for respect, held in counts.items()
    }  # fmt: skip
    return {"answers": answers, "shares": shares}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--include-path", dest="include_path")
    parser.add_argument("--wordings", default="auto")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--make", default="")
    parser.add_argument("--tasks", default="")
    parser.add_argument("--searches", type=int, default=1)
    parser.add_argument("--search-rows", dest="search_rows", type=int, default=8000)
    chosen = vars(parser.parse_args())
    folder, search_rows = chosen.pop("folder"), chosen.pop("search_rows")
    models, tasks = (listed(chosen.pop(name)) for name in ("make", "tasks"))
    make(folder, models, tasks, searches=chosen.pop("searches"), rows=search_rows)
    print(json.dumps(measure(folder, **chosen), indent=2))
