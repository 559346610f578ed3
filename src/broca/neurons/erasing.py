"""Erases located neurons and, for comparison, as many random ones; on the task and on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broca.errors import BadInput
from broca.neurons.intervals import difference, lost, scored
from broca.neurons.neuron_run import INTACT, NeuronRun
from broca.neurons.selection import Columns
from broca.neurons.sets import Matching, random_sets
from broca.results.base import Interval


@dataclass(frozen=True)
class Erased:
    """What erasing one set cost on one task.

    Attributes:
        method: How the set was chosen.
        questions: The task.
        neurons: Neurons erased.
        before: Score of the intact model.
        after: Score with the set erased.
        drop: Score lost, by item.
        random_drop: Score lost with as many random neurons erased, by item, mean over the draws.
        random_drops: Of every draw.
        excess: `drop` - `random_drop`, by item.
        log_probability_drop: Nats of the gold answer lost, by item.
    """

    method: str
    questions: str
    neurons: int
    before: Interval
    after: Interval
    drop: Interval
    random_drop: Interval
    random_drops: tuple[float, ...]
    excess: Interval
    log_probability_drop: Interval


def erased(
    run: NeuronRun,
    sets: Mapping[str, Columns],
    names: Sequence[str],
    *,
    factor: float = 0.0,
    draws: int = 5,
    matching: Matching = "size",
    seed: int = 0,
) -> tuple[Erased, ...]:
    """Erases every set on the `report` items of every task.

    Args:
        run: Measures.
        sets: The located neurons of every method.
        names: The tasks to measure on.
        factor: What located neurons are multiplied with; 0 erases.
        draws: Random sets to compare each with.
        matching: Whether random sets match the size, or the number in every layer.
        seed: Seed of the draws and of the intervals.

    Raises:
        BadInput: A set is empty.
    """
    arms: list[Columns] = []
    for method, columns in sets.items():
        if not len(columns):
            raise BadInput(
                f"{method} located no neuron: there is nothing to erase; lower `sigma` or give "
                "`count`"
            )
        layers = run.neurons.layers
        arms += [columns, *random_sets(columns, layers, seed=seed, draws=draws, matching=matching)]
    trial = run.run.tasks.trial("report")
    results = []
    for name in names:
        run.run.stages.enter(f"erasing on {name}")
        places = run.places(name, "report")
        intact = run.scaled(places, [INTACT])
        after = run.scaled(places, arms, factor)
        before, likelihood = intact.scores[0], intact.log_probability[0]
        for number, (method, columns) in enumerate(sets.items()):
            first = number * (draws + 1)
            located = after.scores[first]
            random = after.scores[first + 1 : first + 1 + draws]
            mean = random.mean(axis=0)
            results.append(
                Erased(
                    method=method,
                    questions=name,
                    neurons=len(columns),
                    before=scored(trial, name, before, seed=seed),
                    after=scored(trial, name, located, seed=seed),
                    drop=lost(trial, name, before, located, seed=seed),
                    random_drop=lost(trial, name, before, mean, seed=seed),
                    random_drops=tuple(float(np.mean(before - draw)) for draw in random),
                    excess=lost(trial, name, mean, located, seed=seed),
                    log_probability_drop=difference(
                        likelihood, after.log_probability[first], seed=seed
                    ),
                )
            )
    return tuple(results)
