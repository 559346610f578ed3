"""Located on A, erased or trained on A, measured on B: of the same capability and of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from broca.errors import BadInput
from broca.neurons.enhancing import enhanced
from broca.neurons.erasing import erased
from broca.neurons.neuron_run import NeuronRun
from broca.neurons.selection import Columns
from broca.neurons.sets import Matching
from broca.options import TrainingOptions
from broca.results.base import Interval
from broca.tasks import Benchmark

Action = Literal["erase", "tune"]


@dataclass(frozen=True)
class Crossed:
    """What was done with the neurons of A, measured on B.

    Attributes:
        action: `erase` or `tune`.
        located_on: A.
        measured_on: B.
        relation: `same data`, `same capability` or `other capability`.
        neurons: Located neurons.
        change: Change of B's score.
        random_change: The same with as many random neurons, mean over the draws.
        log_probability_change: Change in nats of B's gold answers.
    """

    action: str
    located_on: str
    measured_on: str
    relation: str
    neurons: int
    change: Interval
    random_change: float
    log_probability_change: Interval


def require_action(action: str) -> None:
    """Refuses an unknown action.

    Raises:
        BadInput: It is neither erase nor tune.
    """
    if action not in get_args(Action):
        raise BadInput(f"`action` '{action}' is unknown: use erase or tune")


def crossed(
    run: NeuronRun,
    sets: Mapping[str, Columns],
    *,
    action: str,
    options: TrainingOptions,
    draws: int = 3,
    matching: Matching = "size",
    seed: int = 0,
    folder: Path | None = None,
) -> tuple[Crossed, ...]:
    """Acts with every task's neurons and measures on the `report` items of every task.

    Args:
        run: Measures; the model's weights are as before afterwards.
        sets: Located neurons of every task; empty ones are left out.
        action: `erase` the located neurons, or `tune` them on the task they were located on.
        options: How to train.
        draws: Random sets to compare each with.
        matching: Whether random sets match the size, or the number in every layer.
        seed: Seed of the draws and the intervals.
        folder: Where trained weights are kept.

    Raises:
        BadInput: Unknown action.
    """
    require_action(action)
    names = list(sets)
    results = []
    for name, columns in sets.items():
        if not len(columns):
            continue
        if action == "erase":
            changes = _erased(run, columns, names, draws, matching, seed)
        else:
            arms = enhanced(
                run, columns, name, names, options=options, draws=draws, matching=matching,
                arms=("located", "random"), seed=seed, folder=folder,
            )  # fmt: skip
            changes = []
            for other in names:
                here = [arm for arm in arms if arm.questions == other]
                located = next(arm for arm in here if arm.arm == "located")
                random = [arm.change.value for arm in here if arm.arm.startswith("random")]
                changes.append(
                    (located.change, sum(random) / len(random), located.log_probability_change)
                )
        for other, (change, random_change, gained) in zip(names, changes, strict=True):
            results.append(
                Crossed(
                    action=action,
                    located_on=name,
                    measured_on=other,
                    relation=relation_of(run.benchmark(name), run.benchmark(other)),
                    neurons=len(columns),
                    change=change,
                    random_change=random_change,
                    log_probability_change=gained,
                )
            )
    return tuple(results)


def _erased(
    run: NeuronRun,
    columns: Columns,
    names: Sequence[str],
    draws: int,
    matching: Matching,
    seed: int,
) -> list[tuple[Interval, float, Interval]]:
    """Changes of every task when a set is erased: located, random, and in nats."""
    lost = erased(run, {"located": columns}, names, draws=draws, matching=matching, seed=seed)
    return [
        (_minus(on.drop), 0.0 - on.random_drop.value, _minus(on.log_probability_drop))
        for on in lost
    ]


def relation_of(first: Benchmark, second: Benchmark) -> str:
    """How two tasks are related."""
    if first.name == second.name:
        return "same data"
    same = first.capability == second.capability
    return "same capability" if same else "other capability"


def _minus(interval: Interval) -> Interval:
    """The interval of the opposite change, without negative zeros."""
    return Interval(0.0 - interval.value, 0.0 - interval.high, 0.0 - interval.low)
