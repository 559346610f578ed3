"""How often a verification and a larger one disagree, and the rows of both.

    python benchmarks/verdict_stability.py --runs 1000
    python benchmarks/verdict_stability.py --zoo LINES.jsonl --seeds 4 --rows 4000

With `--zoo` every task of every model of the zoo is localized and verified again with as many rows.
A line of the file is a run; the same command goes on after a kill.

Otherwise outcomes are synthetic, the comparison with random sets is the package's. A run has a set
that costs a task 20 to 100 points and the others up to a fifth of that, and random sets, of which 0
to 40 % contain needed components. It is verified as at the end of `localize` (39 sets of each kind,
100 items) and as by `broca verify` (79 sets, 100 other items).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from zoo import models

import broca
from broca.components import Component, ComponentSet
from broca.errors import NothingToLocalize
from broca.verification import Evidence, Scope, Trial
from broca.verification.random_sets import ControlComparison
from broca.verification.statistics import behind

LEVEL, ITEMS, OTHERS = 0.05, 100, ("b", "c", "d", "e", "f")
COMPONENTS = ComponentSet(tuple(Component(0, "head", number) for number in range(200)))


@dataclass(frozen=True)
class Task:
    """A task of right and wrong answers without chance."""

    higher_is_better: bool = True
    chance: float = 0.0

    def aggregate(self, values, items=None):
        """Returns the mean."""
        return float(np.mean(values))

    def at_chance(self, score, *, items):
        """Returns whether nothing is right."""
        return score <= 0

    def loss(self, before, after):
        """Returns the decrease."""
        return before - after


def verdict_of(drops, off_targets, *, sets: int, rows: int, seed) -> tuple[str, int]:
    """Returns the verdict by random sets alone, and their rows.

    Args:
        drops: True drop of the task without the real set, the first, and without random sets.
        off_targets: True drop of the other tasks.
        sets: Number of random sets of each kind.
        rows: Maximum number of rows.
        seed: Seed of the items.
    """
    rng = np.random.default_rng(seed)
    names, share = ("a", *OTHERS), ITEMS // len(OTHERS)
    counts = {name: ITEMS if name == "a" else share for name in names}
    starts = np.cumsum([0, *counts.values()])
    places = {
        name: np.arange(starts[number], starts[number] + counts[name])
        for number, name in enumerate(names)
    }
    trial = Trial("a", (), OTHERS, dict.fromkeys(names, Task()), places, [None] * int(starts[-1]))
    trial = trial.judged(dict.fromkeys(names, 0.98))
    lost = {
        name: rng.random((len(drops), counts[name]))
        < (drops if name == "a" else off_targets)[:, None]
        for name in names
    }
    wrong = {name: rng.random((len(drops), counts[name])) < 0.01 for name in names}
    responses = {name: 1.0 - (lost[name] | wrong[name]) for name in names}
    spent = 0

    def measure(columns, block):
        nonlocal spent
        spent += len(columns) * sum(map(len, block.values()))
        chosen = [number for (number,) in columns]
        return {
            name: responses[name][chosen][:, part - places[name][0]] for name, part in block.items()
        }

    intact = {name: np.vstack([np.ones(counts[name]), responses[name][0]]) for name in names}
    found = Evidence(trial, Scope(resamples=100), intact)
    drawn = {"layers": np.arange(1, 1 + sets)[:, None], "norm": np.arange(100, 100 + sets)[:, None]}
    compared = ControlComparison(found, found.contrast()[1], places, measure, rows)
    controls = compared.controls(drawn, COMPONENTS)
    if any(behind(of.specific.rank - 1, len(of.sets), LEVEL) for of in controls):
        return "not localized", spent
    if controls and all(of.specific.p <= LEVEL for of in controls):
        return "specific", spent
    return "neither", spent


def scenario(rng, *, real: bool):
    """Returns the drops of a set and of random sets; without `real` it is one of them."""
    needed = rng.random(200) < rng.choice([0, 0, 0.02, 0.05, 0.1, 0.2, 0.4])
    drops = np.where(needed, rng.random(200), rng.beta(1, 20, 200))
    off_targets = drops * rng.uniform(0, 0.5, 200)
    if real:
        drops[0] = rng.uniform(0.2, 1)
        off_targets[0] = drops[0] * rng.uniform(0, 0.2)
    return drops, off_targets


def measure_runs(runs: int, *, small: int, large: int) -> dict[str, object]:
    """Returns counts of pairs of verdicts and the rows."""
    pairs: Counter[str] = Counter()
    chance: Counter[str] = Counter()
    rows: tuple[list[int], list[int]] = ([], [])
    for run in range(runs):
        drops = scenario(np.random.default_rng([run, 0]), real=True)
        first, spent = verdict_of(*drops, sets=39, rows=small, seed=[run, 1])
        second, more = verdict_of(*drops, sets=79, rows=large, seed=[run, 2])
        pairs[f"{first} -> {second}"] += 1
        rows[0].append(spent)
        rows[1].append(more)
        drops = scenario(np.random.default_rng([run, 3]), real=False)
        chance[verdict_of(*drops, sets=39, rows=small, seed=[run, 4])[0]] += 1
    return {
        "pairs": dict(pairs),
        "random_set_as_real": dict(chance),
        "rows_mean": [float(np.mean(of)) for of in rows],
        "rows_95": [float(np.quantile(of, 0.95)) for of in rows],
    }


def measure_zoo(file: Path, *, seeds: int, rows: int) -> dict[str, object]:
    """Localizes and verifies what the file lacks, and returns counts of all of its lines."""
    file.touch()
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    done = {(line["model"], line["task"], line["seed"]) for line in lines}
    for seed in range(seeds):
        for entry in models():
            for task in entry.tasks:
                if (entry.name, task, seed) in done:
                    continue
                line = {"model": entry.name, "task": task, "seed": seed}
                line |= {"localize": "nothing selected", "verify": "nothing selected"}
                try:
                    found = broca.localize(
                        str(entry.folder), task, rows=rows, seed=seed, device="cpu",
                        others=[name for name in entry.tasks if name != task],
                        include_path=str(entry.include_path),
                    )  # fmt: skip
                except NothingToLocalize:  # items of this seed that the model cannot do
                    found = None
                    line |= {"localize": "at chance", "verify": "at chance"}
                if found is not None and found.selected:
                    again = broca.verify(found, rows=rows, include_path=str(entry.include_path))
                    line |= {
                        "localize": found.verification.verdict.label, "verify": again.verdict.label,
                        "search_rows": found.cost.rows,
                        "verification_rows": found.cost.verification_rows,
                        "verify_rows": again.rows,
                    }  # fmt: skip
                lines.append(line)
                with file.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(line) + "\n")
    measured = [line for line in lines if "verify_rows" in line]
    return {
        "runs": len(lines),
        "pairs": dict(Counter(f"{line['localize']} -> {line['verify']}" for line in lines)),
        "rows_mean": {
            name: float(np.mean([line[name] for line in measured]))
            for name in ("search_rows", "verification_rows", "verify_rows")
        },
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--small", type=int, default=2500)
    parser.add_argument("--large", type=int, default=5000)
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--rows", type=int, default=4000)
    chosen = parser.parse_args()
    if chosen.zoo is not None:
        counts = measure_zoo(chosen.zoo, seeds=chosen.seeds, rows=chosen.rows)
    else:
        counts = measure_runs(chosen.runs, small=chosen.small, large=chosen.large)
    print(json.dumps(counts, indent=2))
