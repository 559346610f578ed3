"""Does training only the located neurons improve the data set, more than training others?"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from broca.errors import BadInput
from broca.neurons.effects import INTACT, Answers, Measurer
from broca.neurons.locating import NeuronModel, Tell
from broca.neurons.questions import QuestionSet
from broca.neurons.selection import Columns
from broca.neurons.sets import Matching, random_set
from broca.neurons.statistics import Estimate, estimate
from broca.neurons.tuning import Tuned, TuningOptions, tuned, zeroed

Without = Literal["zeroed", "frozen"]
"""What becomes of the located neurons while all others are trained."""


@dataclass(frozen=True)
class Arm:
    """One way to train, measured on one data set.

    Attributes:
        arm: `untuned`, `located`, `without located`, or `random 1`, `random 2`, ...
        questions: The data set it was measured on.
        neurons: Neurons trained.
        share_of_neurons: Of all neurons.
        share_of_parameters: Trained parameters over all parameters of the model.
        score: Score on held-out items.
        change: Score minus that of the untuned model, by item.
        log_probability_change: Nats of the gold answer gained against the untuned model, by item.
        best_epoch: The epoch whose weights were kept; 0 = untuned.
        losses: Validation loss before training and after every epoch.
    """

    arm: str
    questions: str
    neurons: int
    share_of_neurons: float
    share_of_parameters: float
    score: Estimate
    change: Estimate
    log_probability_change: Estimate
    best_epoch: int
    losses: tuple[float, ...]


def enhance(
    neurons: NeuronModel,
    located: Columns,
    train: QuestionSet,
    validation: QuestionSet,
    data: Sequence[QuestionSet],
    *,
    measurer: Measurer,
    options: TuningOptions | None = None,
    draws: int = 3,
    without: Without = "zeroed",
    matching: Matching = "size",
    arms: Sequence[str] = ("located", "without located", "random"),
    seed: int = 0,
    tell: Tell | None = None,
) -> tuple[Arm, ...]:
    """Trains every arm from the same weights on the same items and measures it.

    Args:
        neurons: The model; its weights are as before afterwards.
        located: The located neurons.
        train: Items to train on.
        validation: Items that decide when to stop.
        data: Held-out items to measure on.
        measurer: Asks the questions.
        options: How to train.
        draws: Random sets of the located set's size, each an arm.
        without: Whether `without located` zeroes the parameters of the located neurons, or leaves
            them as they are.
        matching: Whether random sets match the size, or the number in every layer.
        arms: Which arms to train beside the untuned model.
        seed: Seed of the draws, the order of items and the intervals.
        tell: Receives how far it is.

    Raises:
        BadInput: No located neurons, no draws, or an unknown value.
    """
    if without not in get_args(Without):
        raise BadInput(f"--without '{without}' is unknown: use zeroed or frozen")
    if draws < 1:
        raise BadInput(f"--draws must be at least 1, not {draws}")
    if not len(located):
        raise BadInput("no neuron is located: lower --sigma or give --count")
    options = options or TuningOptions()
    chosen: list[tuple[str, Columns]] = []
    if "located" in arms:
        chosen.append(("located", located))
    if "without located" in arms:
        chosen.append(("without located", np.setdiff1d(np.arange(len(neurons)), located)))
    if "random" in arms:
        chosen += [
            (
                f"random {draw + 1}",
                random_set(located, neurons.layers, seed=seed, draw=draw, matching=matching),
            )
            for draw in range(draws)
        ]
    total = sum(parameter.numel() for parameter in neurons.model.model.parameters())
    base = [measurer.under(one, [INTACT])[0] for one in data]
    untuned = Tuned((), 0, 0)
    none = np.zeros(0, dtype=np.intp)
    results = [
        _arm("untuned", none, untuned, one, before, before, neurons, total, seed)
        for one, before in zip(data, base, strict=True)
    ]
    for name, columns in chosen:
        if tell is not None:
            tell(f"training {name}", None)
        with ExitStack() as stack:
            if name == "without located" and without == "zeroed":
                stack.enter_context(zeroed(neurons, located))
            done = stack.enter_context(
                tuned(neurons, columns, train, validation, options=options, seed=seed)
            )
            for one, before in zip(data, base, strict=True):
                (after,) = measurer.under(one, [INTACT], stage=f"measuring {name}")
                results.append(_arm(name, columns, done, one, before, after, neurons, total, seed))
    return tuple(results)


def _arm(
    name: str,
    columns: Columns,
    done: Tuned,
    questions: QuestionSet,
    before: Answers,
    after: Answers,
    neurons: NeuronModel,
    total: int,
    seed: int,
) -> Arm:
    gained = after.log_probability - before.log_probability
    return Arm(
        arm=name,
        questions=questions.name,
        neurons=len(columns),
        share_of_neurons=len(columns) / len(neurons),
        share_of_parameters=done.parameters / total,
        score=estimate(after.scores, seed=seed),
        change=estimate(after.scores - before.scores, seed=seed),
        log_probability_change=estimate(gained, seed=seed),
        best_epoch=done.best,
        losses=done.losses,
    )
