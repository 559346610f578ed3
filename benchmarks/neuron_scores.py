"""Speed of locating neurons, a ratio in one run: `python benchmarks/neuron_scores.py [--items N]`.

The plain way runs one neuron layer, one step and one sequence at a time, as
`tests/neurons/slow.py` writes it; both give the same scores.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from broca.executors.process import tune_process

tune_process()

import numpy as np
import torch

from broca.models import load
from broca.neurons import NeuronModel, from_benchmark, item_scores
from broca.tasks import Catalog, RequestTokenizer, split_items

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from neurons.slow import slow_scores


def main() -> None:
    """Prints seconds an item of both ways, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--slow-items", type=int, default=4)
    parser.add_argument("--tasks", default="addition,mc_biology")
    options = parser.parse_args()
    model = load("reference", device="cpu")
    neurons = NeuronModel(model)
    tokenizer = RequestTokenizer(model.tokenizer, max_length=model.max_length)
    paths = [block.part.path for block in neurons.blocks]
    print(f"{torch.get_num_threads()} threads")
    for task in options.tasks.split(","):
        benchmark = Catalog().load(task, tokenizer)
        split = split_items(task, len(benchmark.items), items=options.items, seed=0)
        questions = from_benchmark(benchmark, split.locate)
        item_scores(neurons, questions.take(range(2)))
        start = time.perf_counter()
        fast = item_scores(neurons, questions)
        ours = time.perf_counter() - start
        start = time.perf_counter()
        for number in range(options.slow_items):
            gold = questions.questions[number].gold
            scores, _ = slow_scores(model.model, paths, gold.context, gold.continuation, steps=19)
            whole = torch.cat([scores[path] for path in paths]).numpy()
            assert np.abs(whole - fast.scores[number]).max() < 1e-5
        plain = (time.perf_counter() - start) / options.slow_items
        each = ours / len(questions)
        print(
            f"{task}: {len(questions)} items in {ours:.1f} s; {each * 1e3:.1f} ms an item, plain "
            f"{plain * 1e3:.0f} ms, ratio {plain / each:.1f}"
        )


if __name__ == "__main__":
    main()
