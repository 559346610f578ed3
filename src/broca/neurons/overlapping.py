"""Do two halves of a task's items, or two tasks, share commonality neurons?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from broca.neurons.crossing import relation_of
from broca.neurons.neuron_run import ItemPlaces, NeuronRun
from broca.neurons.selection import Columns, commonality_set
from broca.neurons.sets import shared
from broca.results.neurons import ComparedHalves, Overlaps

_MEASURES = ("of_first", "of_second", "of_larger", "iou", "expected_of_larger", "expected_iou")


def overlapped(run: NeuronRun, names: Sequence[str]) -> Overlaps:
    """Locates on two halves of every task's `locate` items and compares all of them.

    Halves are compared with halves, both across tasks and within a task, so that every set is
    computed from the same number of items.

    Args:
        run: The run.
        names: The tasks; pairs of the same capability are summarized separately.
    """
    located: list[tuple[str, int, Columns]] = []
    for name in names:
        run.stages.enter(f"scoring neurons on {name}")
        for number, half in enumerate(halves(run.places(name), seed=run.seed), start=1):
            scores = run.item_scores(half).scores
            located.append((name, number, commonality_set(scores, run.neurons.layers, run.rule)))
    pairs = []
    for position, (first, first_half, columns) in enumerate(located):
        for second, second_half, others in located[position + 1 :]:
            pairs.append(
                ComparedHalves(
                    f"{first}/{first_half}",
                    f"{second}/{second_half}",
                    relation_of(run.benchmark(first), run.benchmark(second)),
                    (len(columns), len(others)),
                    shared(columns, others, neurons=len(run.neurons)),
                )
            )
    summary = {}
    for relation in ("same data", "same capability", "other capability"):
        overlaps = [pair.overlap for pair in pairs if pair.relation == relation]
        if overlaps:
            summary[relation] = {
                measure: _mean([getattr(overlap, measure) for overlap in overlaps])
                for measure in _MEASURES
            }
    return Overlaps(tuple(names), tuple(pairs), summary)


def halves(places: ItemPlaces, *, seed: int) -> tuple[ItemPlaces, ItemPlaces]:
    """Returns two disjoint halves of some items, drawn by seed."""
    order = np.random.default_rng([seed, 2]).permutation(len(places))
    middle = len(places) // 2
    return places[np.sort(order[:middle])], places[np.sort(order[middle:])]


def _mean(values: list[float | None]) -> float | None:
    """Returns the mean of the values that are known; None if there are none."""
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None
