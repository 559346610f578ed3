"""The steps of the neuron verbs, with their expected rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broca.neurons.sets import RandomSets
from broca.options import TrainingOptions
from broca.runs.forecast import Step

if TYPE_CHECKING:
    from broca.neurons.neuron_run import ItemPlaces, NeuronRun

INTEGRATED = "integrated gradients"
"""The kind of rows that score neurons by integrated gradients."""

ANSWERS = 2
"""Number of rows of an item and a set: the task's metric, and the gold answer's likelihood."""

PASSES = 3
"""Cost in rows of an item of a training step: a backward pass takes as long as two forward
passes."""


def scoring_stage(task: str) -> str:
    """The stage that scores neurons on a task."""
    return f"scoring neurons on {task}"


def scaling_stage(factor: float) -> str:
    """The stage that scales located neurons."""
    return f"scaling by {factor:g}"


INTACT_STAGE = "measuring the intact model"


def scoring_step(task: str, places: ItemPlaces) -> Step:
    """The step of integrated gradients on some items."""
    return Step(scoring_stage(task), len(places), INTEGRATED)


def erasing_steps(
    run: NeuronRun, names: Sequence[str], *, sets: int, chance: RandomSets, stage: str = "erasing"
) -> list[Step]:
    """Returns the steps of `erased`.

    Args:
        run: The run.
        names: The tasks to measure on.
        sets: Number of located sets.
        chance: Random sets for comparison.
        stage: Beginning of the names of stages.
    """
    arms = 1 + sets * (1 + chance.draws)
    return [
        Step(f"{stage} on {name}", ANSWERS * arms * len(run.places(name, "report")))
        for name in names
    ]


def training_steps(
    run: NeuronRun,
    task: str,
    names: Sequence[str],
    arms: Sequence[str],
    *,
    options: TrainingOptions,
    of: str = "",
) -> list[Step]:
    """Returns the steps of `enhanced`; training that stops early has fewer rows.

    Args:
        run: The run.
        task: The task to train on.
        names: The tasks to measure on.
        arms: The sets to train.
        options: Options of the training.
        of: End of the names of stages.
    """
    measured = ANSWERS * sum(len(run.places(name, "report")) for name in names)
    rows = training_rows(
        len(run.places(task, "locate")), len(run.places(task, "confirm")), options.epochs
    )
    return [
        Step(f"measuring the untuned model{of}", measured),
        *(
            step
            for arm in arms
            for step in (
                Step(f"training {arm}{of}", rows, "training"),
                Step(f"measuring {arm}{of}", measured),
            )
        ),
    ]


def arm_names(arms: Sequence[str], chance: RandomSets) -> list[str]:
    """Returns the names of the trained sets; `random` stands for every draw."""
    draws = [f"random {number}" for number in range(1, chance.draws + 1)]
    return [name for arm in arms for name in (draws if arm == "random" else [arm])]


def training_rows(train: int, validation: int, epochs: int) -> int:
    """Returns the cost in rows of some epochs of training, with the validation before the first."""
    return epochs * (PASSES * train + validation) + validation


def scaling_steps(
    run: NeuronRun,
    task: str,
    unrelated: ItemPlaces,
    *,
    factors: Sequence[float],
    chance: RandomSets,
) -> list[Step]:
    """Returns the steps of `move`.

    Args:
        run: The run.
        task: The task.
        unrelated: Items of other tasks that are measured too.
        factors: Factors of the neurons' activations.
        chance: Random sets for every item.
    """
    items = len(run.places(task))
    others = items if len(unrelated) else 0
    return [
        scoring_step(task, run.places(task)),
        Step(INTACT_STAGE, items + others),
        *(Step(scaling_stage(factor), items * (1 + chance.draws) + others) for factor in factors),
    ]
