"""Locates neurons on A, erases or trains them, and measures B, of the same capability or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from broca.neurons.enhancing import enhanced
from broca.neurons.erasing import erased
from broca.neurons.neuron_run import NeuronRun
from broca.neurons.selection import Columns
from broca.neurons.sets import RandomSets
from broca.options import TrainingOptions
from broca.results.base import Interval
from broca.results.neurons import Arm, Crossed
from broca.tasks import Benchmark

ACTIONS = ("erase", "tune")
"""The actions on located neurons."""

TUNED = ("located", "random")
"""The sets that `tune` trains."""


def crossed(
    run: NeuronRun,
    sets: Mapping[str, Columns],
    chance: RandomSets,
    *,
    action: str,
    options: TrainingOptions,
    folder: Path | None = None,
) -> tuple[Crossed, ...]:
    """Erases or trains every task's neurons and measures on the `report` items of every task.

    Args:
        run: The run; it restores the model's weights.
        sets: Located neurons of every task; empty ones are left out.
        chance: Random sets for comparison.
        action: `erase` erases the located neurons, `tune` trains them on their task.
        options: Options of the training.
        folder: Folder of trained weights.
    """
    names = list(sets)
    results = []
    for name, columns in sets.items():
        if not len(columns):
            continue
        if action == "erase":
            changes = [
                (_minus(on.drop), 0.0 - on.random_drop.value, _minus(on.log_probability_drop))
                for on in erased(run, {"located": columns}, names, chance, stage=_erasing(name))
            ]
        else:
            arms = enhanced(
                run, columns, name, names, chance, options=options, arms=TUNED, folder=folder,
                of=_of(name),
            )  # fmt: skip
            changes = [_tuned([arm for arm in arms if arm.questions == on]) for on in names]
        for measured_on, (change, random_change, gained) in zip(names, changes, strict=True):
            results.append(
                Crossed(
                    action=action,
                    located_on=name,
                    measured_on=measured_on,
                    relation=relation_of(run.benchmark(name), run.benchmark(measured_on)),
                    neurons=len(columns),
                    change=change,
                    random_change=random_change,
                    log_probability_change=gained,
                )
            )
    return tuple(results)


def _erasing(name: str) -> str:
    return f"erasing the neurons of {name}"


def _of(name: str) -> str:
    return f" of {name}"


def _tuned(arms: Sequence[Arm]) -> tuple[Interval, float, Interval]:
    """Returns the changes of a task when neurons are trained: located, random, and in nats."""
    located = next(arm for arm in arms if arm.arm == "located")
    random = [arm.change.value for arm in arms if arm.arm.startswith("random")]
    return located.change, sum(random) / len(random), located.log_probability_change


def relation_of(first: Benchmark, second: Benchmark) -> str:
    """Returns the relation of two tasks."""
    if first.name == second.name:
        return "same data"
    same = first.capability == second.capability
    return "same capability" if same else "other capability"


def _minus(interval: Interval) -> Interval:
    """Returns the interval of the opposite change, without negative zeros."""
    return Interval(0.0 - interval.value, 0.0 - interval.high, 0.0 - interval.low)
