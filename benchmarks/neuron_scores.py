"""Speed of locating neurons, a ratio in one run: `python benchmarks/neuron_scores.py [--items N]`.

The plain implementation, `tests/neurons/slow.py`, runs one neuron layer, one step and one sequence
at a time; both give the same scores.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from prepared import prepare

prepare()

import numpy as np
import torch

from broca.neurons.neuron_run import open_neurons
from broca.options import LocateOptions

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from neurons.slow import slow_scores


def main() -> None:
    """Prints the time per item of both implementations, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--slow-items", type=int, default=4)
    parser.add_argument("--others", default="mc_biology")
    options = parser.parse_args()
    keywords = {"model": "reference", "task": "addition", "items": options.items, "device": "cpu"}
    located = LocateOptions.of(keywords)
    print(f"{torch.get_num_threads()} threads")
    with open_neurons("locate", located, others=options.others, parts={"locate": True}) as run:
        paths = [block.part.path for block in run.neurons.blocks]
        for task in run.names:
            places = run.places(task)
            run.item_scores(places[:2], integrated=False)
            start = time.perf_counter()
            fast = run.item_scores(places)
            fast_s = time.perf_counter() - start
            start = time.perf_counter()
            golds = run.golds(places[: options.slow_items])
            for gold, scores in zip(golds, fast.scores, strict=False):
                plain, _ = slow_scores(
                    run.neurons.model.model, paths, gold.context, gold.continuation, steps=19
                )
                expected = torch.cat([plain[path] for path in paths]).numpy()
                assert np.abs(expected - scores).max() < 1e-5
            slow = (time.perf_counter() - start) / options.slow_items
            per_item = fast_s / len(places)
            print(
                f"{task}: {len(places)} items in {fast_s:.1f} s; {per_item * 1e3:.1f} ms an item, "
                f"plain {slow * 1e3:.0f} ms, ratio {slow / per_item:.1f}"
            )


if __name__ == "__main__":
    main()
