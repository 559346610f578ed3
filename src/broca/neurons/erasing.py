"""Erases located neurons and, for comparison, as many random ones; on the task and on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broca.errors import BadInput
from broca.neurons.effects import INTACT, Measurer, Scaled
from broca.neurons.locating import NeuronModel
from broca.neurons.questions import QuestionSet
from broca.neurons.selection import Columns
from broca.neurons.sets import Matching, random_set
from broca.neurons.statistics import Estimate, estimate


@dataclass(frozen=True)
class Erased:
    """What erasing one set cost on one data set.

    Attributes:
        method: How the set was chosen.
        questions: The data set.
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
    before: Estimate
    after: Estimate
    drop: Estimate
    random_drop: Estimate
    random_drops: tuple[float, ...]
    excess: Estimate
    log_probability_drop: Estimate


def erase(
    neurons: NeuronModel,
    sets: Mapping[str, Columns],
    data: Sequence[QuestionSet],
    *,
    measurer: Measurer,
    factor: float = 0.0,
    draws: int = 5,
    matching: Matching = "size",
    seed: int = 0,
) -> tuple[Erased, ...]:
    """Erases every set on every data set.

    Args:
        neurons: The model.
        sets: The located neurons of every method.
        data: The data sets to measure on, the task's own first.
        measurer: Asks the questions.
        factor: What located neurons are multiplied with; 0 erases.
        draws: Random sets to compare each with.
        matching: Whether random sets match the size, or the number in every layer.
        seed: Seed of the draws and of the intervals.

    Raises:
        BadInput: No draws, or a set is empty.
    """
    if draws < 1:
        raise BadInput(f"--draws must be at least 1, not {draws}")
    for method, columns in sets.items():
        if not len(columns):
            raise BadInput(
                f"{method} located no neuron: there is nothing to erase; lower --sigma or give "
                "--count"
            )
    arms = [INTACT]
    for columns in sets.values():
        arms.append(Scaled(columns, factor))
        arms += [
            Scaled(
                random_set(columns, neurons.layers, seed=seed, draw=draw, matching=matching), factor
            )
            for draw in range(draws)
        ]
    results = []
    for questions in data:
        intact, *rest = measurer.under(questions, arms, stage=f"erasing on {questions.name}")
        for number, (method, columns) in enumerate(sets.items()):
            located, *randoms = rest[number * (draws + 1) : (number + 1) * (draws + 1)]
            drop = intact.scores - located.scores
            by_draw = np.stack([intact.scores - one.scores for one in randoms])
            lost = intact.log_probability - located.log_probability
            results.append(
                Erased(
                    method=method,
                    questions=questions.name,
                    neurons=len(columns),
                    before=estimate(intact.scores, seed=seed),
                    after=estimate(located.scores, seed=seed),
                    drop=estimate(drop, seed=seed),
                    random_drop=estimate(by_draw.mean(0), seed=seed),
                    random_drops=tuple(float(one) for one in by_draw.mean(1)),
                    excess=estimate(drop - by_draw.mean(0), seed=seed),
                    log_probability_drop=estimate(lost, seed=seed),
                )
            )
    return tuple(results)
