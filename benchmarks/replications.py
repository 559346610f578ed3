"""The share of claims that hold on fresh items, under another ablation, and in other words.

python benchmarks/replications.py docs/claims --seeds 2 --rows 10000
python benchmarks/replications.py FOLDER --model MODEL --include-path TASKS --wordings A,B
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import broca
from broca.verification.statistics import share_interval


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
    chosen = vars(parser.parse_args())
    print(json.dumps(measure(chosen.pop("folder"), **chosen), indent=2))
