"""Does training only the located neurons improve the task more than training others?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from broca.neurons.neuron_run import NeuronRun, Responses
from broca.neurons.selection import EMPTY, Columns
from broca.neurons.sets import RandomSets
from broca.neurons.tuning import NeuronDelta, Trained, Training, trained, zeros
from broca.options import TrainingOptions
from broca.results.neurons import Arm

WITHOUT = ("zeroed", "frozen")
"""States of the located neurons while all others are trained."""

ARMS = ("located", "without located", "random")


def enhanced(
    run: NeuronRun,
    located: Columns,
    task: str,
    names: Sequence[str],
    chance: RandomSets,
    *,
    options: TrainingOptions,
    without: str = "zeroed",
    arms: Sequence[str] = ARMS,
    folder: Path | None = None,
    of: str = "",
) -> tuple[Arm, ...]:
    """Trains every set from the same weights on the same items, and measures it.

    Args:
        run: The run; it restores the model's weights.
        located: The located neurons.
        task: The task whose `locate` items are the training items and whose `confirm` items are the
            validation items.
        names: The tasks to measure on, on their `report` items.
        chance: Random sets of the located set's size.
        options: Options of the training.
        without: Whether `without located` zeroes the parameters of the located neurons, or freezes
            them.
        arms: The sets to train.
        folder: Folder of trained weights.
        of: End of the names of stages.
    """
    chosen: dict[str, Columns] = {}
    if "located" in arms:
        chosen["located"] = located
    if "without located" in arms:
        chosen["without located"] = np.setdiff1d(np.arange(len(run.neurons)), located)
    if "random" in arms:
        sets = chance.like(located, run.neurons.layers, seed=run.seed)
        chosen |= {f"random {number}": columns for number, columns in enumerate(sets, start=1)}
    stages = run.stages
    stages.enter(f"measuring the untuned model{of}")
    before = {name: run.scaled(run.places(name, "report"), [EMPTY]) for name in names}
    untuned = Trained((), 0, 0, NeuronDelta(()))
    results = [*_measured(run, "untuned", EMPTY, untuned, before, before)]
    train, validation = (run.golds(run.places(task, part)) for part in ("locate", "confirm"))
    for arm, columns in chosen.items():
        stages.enter(f"training {arm}{of}")
        base = NeuronDelta(())
        if arm == "without located" and without == "zeroed":
            base = zeros(run.neurons, located)
        training = Training(columns, train, validation, options, run.seed, base)
        done = trained(run.neurons, training, folder, stages=stages)
        stages.enter(f"measuring {arm}{of}")
        tuned = run.changed(done.delta)
        after = {name: tuned.scaled(run.places(name, "report"), [EMPTY]) for name in names}
        tuned.run.finish()
        results += _measured(run, arm, columns, done, before, after)
    return tuple(results)


def _measured(
    run: NeuronRun,
    arm: str,
    columns: Columns,
    done: Trained,
    before: Mapping[str, Responses],
    after: Mapping[str, Responses],
) -> list[Arm]:
    """Measures a trained set on every task."""
    return [
        Arm(
            arm=arm,
            questions=name,
            neurons=len(columns),
            share_of_neurons=len(columns) / len(run.neurons),
            share_of_parameters=done.parameters / run.neurons.parameters,
            score=run.score(name, tuned.scores[0]),
            change=run.lost(name, tuned.scores[0], before[name].scores[0]),
            log_probability_change=run.difference(
                tuned.log_probability[0], before[name].log_probability[0]
            ),
            best_epoch=done.best,
            losses=done.losses,
        )
        for name, tuned in after.items()
    ]
