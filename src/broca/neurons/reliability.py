"""Reliability: do located neurons move p(answer), down when suppressed and up when amplified?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.neurons.effects import INTACT, Measurer, Scaled
from broca.neurons.locating import NeuronModel, Tell, item_scores
from broca.neurons.questions import Question, QuestionSet
from broca.neurons.selection import Rule, item_set
from broca.neurons.sets import Matching, random_set
from broca.neurons.statistics import Estimate, estimate


@dataclass(frozen=True)
class Moved:
    """What scaling located neurons did to p(answer).

    Attributes:
        factor: What they were multiplied with.
        located: Change of p(answer) of the item they were located on.
        random: The same with as many random neurons, mean over the draws.
        excess: The difference, by item.
        unrelated: Change of p(answer) of unrelated prompts with the located neurons scaled; None
            without such prompts.
        relative: Mean change with located neurons over mean p(answer).
        as_claimed: Share of items that moved down (factor below 1) or up (above 1).
    """

    factor: float
    located: Estimate
    random: Estimate
    excess: Estimate
    unrelated: Estimate | None
    relative: float
    as_claimed: float


@dataclass(frozen=True)
class Reliability:
    """Whether located neurons of single items do what they are located for.

    Attributes:
        questions: The data set.
        items: Items with at least one located neuron.
        empty: Items for which none stands out; they are left out.
        set_size: Neurons of an item, mean.
        probability: p(answer) of the intact model, mean.
        draws: Random sets for every item.
        moved: By factor.
    """

    questions: str
    items: int
    empty: int
    set_size: float
    probability: float
    draws: int
    moved: tuple[Moved, ...]


def reliability(
    neurons: NeuronModel,
    questions: QuestionSet,
    *,
    measurer: Measurer,
    rule: Rule,
    unrelated: Sequence[Question] = (),
    factors: Sequence[float] = (0.0, 2.0),
    draws: int = 5,
    matching: Matching = "size",
    steps: int = 19,
    seed: int = 0,
    book: Path | None = None,
    tell: Tell | None = None,
) -> Reliability:
    """Scales every item's own neurons and measures that item, random sets, and unrelated prompts.

    Args:
        neurons: The model.
        questions: The data set; every item is located by itself.
        measurer: Asks the questions.
        rule: Which neurons of an item stand out.
        unrelated: Prompts that should not move; every item gets one, in turn.
        factors: What located neurons are multiplied with.
        draws: Random sets for every item.
        matching: Whether random sets match the size, or the number in every layer.
        steps: Steps of the integrated gradients.
        seed: Seed of the draws and the intervals.
        book: File of item scores, for resuming.
        tell: Receives how far it is.

    Raises:
        BadInput: No draws, or no item has located neurons.
    """
    if draws < 1:
        raise BadInput(f"--draws must be at least 1, not {draws}")
    found = item_scores(neurons, questions, steps=steps, book=book, tell=tell)
    sets = [item_set(one, neurons.layers, rule) for one in found.scores]
    chosen = [index for index, one in enumerate(sets) if len(one)]
    if not chosen:
        raise BadInput(
            f"no neuron of any item of '{questions.name}' stands out: lower --sigma or give --count"
        )
    asked = [questions.questions[index] for index in chosen]
    other = (
        [unrelated[number % len(unrelated)] for number in range(len(asked))] if unrelated else []
    )
    before = measurer.rows_under(
        [*asked, *other], [INTACT], [0] * (len(asked) + len(other)), scored=False
    ).probability
    moved = []
    for factor in factors:
        arms: list[Scaled] = []
        rows: list[Question] = []
        for number, index in enumerate(chosen):
            arms.append(Scaled(sets[index], factor))
            rows.append(asked[number])
            for draw in range(draws):
                drawn = random_set(
                    sets[index], neurons.layers, seed=seed, draw=draw, matching=matching
                )
                arms.append(Scaled(drawn, factor))
                rows.append(asked[number])
        place = list(range(len(arms)))
        located_arm = [number * (draws + 1) for number in range(len(asked))]
        after = measurer.rows_under(
            [*rows, *other], arms, place + (located_arm if other else []), scored=False,
            stage=f"scaling by {factor:g}",
        ).probability  # fmt: skip
        by_item = after[: len(rows)].reshape(len(asked), draws + 1)
        change = by_item - before[: len(asked), None]
        elsewhere = after[len(rows) :] - before[len(asked) :]
        moved.append(_moved(factor, change, before[: len(asked)], elsewhere, seed))
    return Reliability(
        questions=questions.name,
        items=len(chosen),
        empty=len(questions) - len(chosen),
        set_size=float(np.mean([len(sets[index]) for index in chosen])),
        probability=float(before[: len(asked)].mean()),
        draws=draws,
        moved=tuple(moved),
    )


def _moved(
    factor: float,
    change: NDArray[np.float64],
    before: NDArray[np.float64],
    elsewhere: NDArray[np.float64],
    seed: int,
) -> Moved:
    """Sums up one factor.

    Args:
        factor: The factor.
        change: Of p(answer) by item, located first and random draws after, `(items, 1 + draws)`.
        before: p(answer) of the intact model, `(items,)`.
        elsewhere: Change of unrelated prompts, `(items,)` or empty.
        seed: Seed of the intervals.
    """
    located, random = change[:, 0], change[:, 1:].mean(axis=1)
    direction = 1.0 if factor > 1 else -1.0
    return Moved(
        factor=factor,
        located=estimate(located, seed=seed),
        random=estimate(random, seed=seed),
        excess=estimate(located - random, seed=seed),
        unrelated=estimate(elsewhere, seed=seed) if len(elsewhere) else None,
        relative=float(located.mean() / before.mean()),
        as_claimed=float((direction * located > 0).mean()),
    )
