"""Do located neurons change p(answer), down when suppressed and up when amplified?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.neurons.expecting import INTACT_STAGE, scaling, scoring
from broca.neurons.neuron_run import INTACT, NeuronRun, Places
from broca.neurons.sets import RandomSets
from broca.results.base import Interval


@dataclass(frozen=True)
class Moved:
    """The change of p(answer) when located neurons are scaled.

    Attributes:
        factor: Factor of the activations.
        located: Change of p(answer) of the item of the neurons.
        random: Change with as many random neurons, mean over the draws.
        excess: `located` - `random`, paired by item.
        unrelated: Change of p(answer) of unrelated prompts with these neurons scaled; None without
            such prompts.
        relative: Mean change with located neurons divided by mean p(answer).
        as_claimed: Share of items whose p(answer) decreases (factor below 1) or increases (above
            1).
    """

    factor: float
    located: Interval
    random: Interval
    excess: Interval
    unrelated: Interval | None
    relative: float
    as_claimed: float


@dataclass(frozen=True)
class Reliability:
    """The effect of scaling the located neurons of single items.

    Attributes:
        questions: The task.
        items: Number of items with at least one located neuron.
        empty: Number of items without located neurons, which are left out.
        set_size: Mean number of neurons of an item.
        probability: Mean p(answer) of the intact model.
        draws: Number of random sets for every item.
        moved: Changes for every factor.
    """

    questions: str
    items: int
    empty: int
    set_size: float
    probability: float
    draws: int
    moved: tuple[Moved, ...]


def numbers_of(factors: str | Sequence[float]) -> tuple[float, ...]:
    """Reads factors from a list, or from a string joined by commas.

    Raises:
        BadInput: A factor is not a number.
    """
    parts = factors.split(",") if isinstance(factors, str) else factors
    try:
        return tuple(float(part) for part in parts)
    except ValueError:
        raise BadInput(f"`factors` '{factors}' are not numbers joined by commas") from None


def move(
    run: NeuronRun,
    task: str,
    chance: RandomSets,
    *,
    unrelated: Places = INTACT,
    factors: Sequence[float] = (0.0, 2.0),
) -> Reliability:
    """Scales every item's neurons and measures the item, random sets, and unrelated prompts.

    Args:
        run: The run.
        task: The task, each of whose `locate` items has its own neurons.
        chance: Random sets for every item.
        unrelated: Items that should not change; each item of the task is paired with one, in turn.
        factors: Factors of the neurons' activations.

    Raises:
        BadInput: No item has located neurons.
    """
    places, draws = run.places(task), chance.draws
    run.stages.enter(scoring(task))
    every = run.item_sets(places)
    chosen = [index for index, columns in enumerate(every) if len(columns)]
    if not chosen:
        raise BadInput(
            f"no neuron of any item of '{task}' stands out: lower `sigma` or give `count`"
        )
    places, sets = places[chosen], [every[index] for index in chosen]
    others = unrelated[np.arange(len(sets)) % len(unrelated)] if len(unrelated) else INTACT
    all_places = np.concatenate([places, others])
    run.stages.enter(INTACT_STAGE)
    before = np.exp(
        run.log_probability(all_places, [INTACT], np.zeros(len(all_places), dtype=np.intp))
    )
    intact = before[: len(places)]
    arms = []
    for columns in sets:
        arms += [columns, *chance.like(columns, run.neurons.layers, seed=run.seed)]
    rows = np.concatenate([np.repeat(places, draws + 1), others])
    located = np.arange(len(others)) * (draws + 1)
    index = np.concatenate([np.arange(len(arms)), located])
    moved = []
    for factor in factors:
        run.stages.enter(scaling(factor))
        after = np.exp(run.log_probability(rows, arms, index, factor=factor))
        by_item = after[: len(arms)].reshape(len(places), draws + 1)
        elsewhere = (after[len(arms) :], before[len(places) :])
        moved.append(_moved(run, factor, by_item, intact, elsewhere))
    return Reliability(
        questions=task,
        items=len(sets),
        empty=len(every) - len(sets),
        set_size=float(np.mean([len(columns) for columns in sets])),
        probability=float(intact.mean()),
        draws=draws,
        moved=tuple(moved),
    )


def _moved(
    run: NeuronRun,
    factor: float,
    after: NDArray[np.float64],
    before: NDArray[np.float64],
    elsewhere: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> Moved:
    """Summarizes a factor.

    Args:
        run: Resamples items.
        factor: The factor.
        after: p(answer) by item, first with located neurons, then with random draws, `(items, 1 +
            draws)`.
        before: p(answer) of the intact model, `(items,)`.
        elsewhere: p(answer) of unrelated prompts, scaled and intact, `(items,)` or empty.
    """
    located, random = after[:, 0], after[:, 1:].mean(axis=1)
    change = located - before
    direction = 1.0 if factor > 1 else -1.0
    return Moved(
        factor=factor,
        located=run.difference(located, before),
        random=run.difference(random, before),
        excess=run.difference(located, random),
        unrelated=run.difference(*elsewhere) if len(elsewhere[0]) else None,
        relative=float(change.mean() / before.mean()),
        as_claimed=float((direction * change > 0).mean()),
    )
