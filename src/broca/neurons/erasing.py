"""Erases located neurons, and as many random neurons for comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from broca.errors import BadInput
from broca.neurons.neuron_run import NeuronRun
from broca.neurons.selection import EMPTY, Columns
from broca.neurons.sets import RandomSets
from broca.results.neurons import Erased


def erased(
    run: NeuronRun,
    sets: Mapping[str, Columns],
    names: Sequence[str],
    chance: RandomSets,
    *,
    factor: float = 0.0,
    stage: str = "erasing",
) -> tuple[Erased, ...]:
    """Erases every set on the `report` items of every task.

    Args:
        run: The run.
        sets: The located neurons of every method.
        names: The tasks to measure on.
        chance: Random sets for comparison.
        factor: Factor of the neurons' activations; 0 erases.
        stage: Beginning of the names of stages.

    Raises:
        BadInput: A set is empty.
    """
    arms: list[Columns] = []
    for method, columns in sets.items():
        if not len(columns):
            raise BadInput(
                f"{method} selected no neuron: there is nothing to erase; lower `sigma` or give "
                "`count`"
            )
        arms += [columns, *chance.like(columns, run.neurons.layers, seed=run.seed)]
    results = []
    for name in names:
        run.stages.enter(f"{stage} on {name}")
        places = run.places(name, "report")
        intact = run.scaled(places, [EMPTY])
        after = run.scaled(places, arms, factor)
        before, likelihood = intact.scores[0], intact.log_probability[0]
        for number, (method, columns) in enumerate(sets.items()):
            first = number * (chance.draws + 1)
            located = after.scores[first]
            random = after.scores[first + 1 : first + 1 + chance.draws]
            mean = random.mean(axis=0)
            results.append(
                Erased(
                    method=method,
                    questions=name,
                    neurons=len(columns),
                    before=run.score(name, before),
                    after=run.score(name, located),
                    drop=run.lost(name, before, located),
                    random_drop=run.lost(name, before, mean),
                    random_drops=tuple(float(np.mean(before - draw)) for draw in random),
                    excess=run.lost(name, mean, located),
                    log_probability_drop=run.difference(likelihood, after.log_probability[first]),
                )
            )
    return tuple(results)
