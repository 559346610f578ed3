"""Ablates components that the other tasks need too one by one, and finds the universal ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broca.components import ComponentSet
from broca.measurement import Execute
from broca.verification.effects import LEAST, EffectMatrix, universal
from broca.verification.statistics import bootstrap_drops
from broca.verification.trial import Trial

_ITEMS = 60
"""Maximum number of report items of each task."""
_RESAMPLES = 200


@dataclass(frozen=True)
class Shared:
    """Components that several tasks need.

    Attributes:
        effects: Change of every task's score when each component is ablated alone, in the order of
            the components.
        universal: Components that most tasks need to about the same degree, as in an atlas, worst
            first.
    """

    effects: dict[str, dict[str, float]]
    universal: tuple[str, ...]


def ablate_alone(
    columns: Sequence[int],
    components: ComponentSet,
    trial: Trial,
    execute: Execute,
    before: Mapping[str, float],
    *,
    seed: int,
) -> Shared:
    """Ablates components one by one and scores every task on some of its report items.

    Args:
        columns: Columns of the components.
        components: All components.
        trial: The tasks and their report items.
        execute: Measures a plan; higher responses are better.
        before: Score of every task on the intact model; tasks at chance can show no damage.
        seed: Seed of the resamples.
    """
    if not columns:
        return Shared({}, ())
    masks = np.zeros((1 + len(columns), len(components)), dtype=bool)
    masks[np.arange(1, len(masks)), list(columns)] = True
    measured = trial.responses(execute, masks, trial.at_most(_ITEMS))
    effects = np.empty((len(measured), len(columns)))
    resampled = np.empty((_RESAMPLES, *effects.shape))
    for row, (name, responses) in enumerate(measured.items()):
        intact, *ablated = responses
        for column, values in enumerate(ablated):
            # 0.0 - x, not -x: no loss is 0, not -0
            effects[row, column] = 0.0 - trial.loss(name, intact, values)
            resampled[:, row, column] = -bootstrap_drops(
                intact,
                values,
                resamples=_RESAMPLES,
                seed=[seed, row],
                aggregate=trial.aggregation(name, intact),
            )
    benchmarks = [trial.benchmarks[name] for name in measured]
    usable = [
        not benchmark.at_chance(before[name], items=len(trial.places[name]))
        for name, benchmark in zip(measured, benchmarks, strict=True)
    ]
    matrix = EffectMatrix(
        effects, resampled, np.array(usable),
        tuple(benchmark.capability for benchmark in benchmarks), LEAST,
    )  # fmt: skip
    names = [components.names[column] for column in columns]
    return Shared(
        {
            name: dict(zip(measured, effects[:, column].tolist(), strict=True))
            for column, name in enumerate(names)
        },
        tuple(names[column] for column in universal(matrix)),
    )
