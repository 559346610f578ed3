"""Do located neurons change p(answer), down when suppressed and up when amplified?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.neurons.neuron_run import ItemPlaces, NeuronRun
from broca.neurons.selection import EMPTY
from broca.neurons.sets import RandomSets
from broca.results.neurons import Moved, Reliability
from broca.runs.run import INTACT


def factors_of(factors: str | Sequence[float]) -> tuple[float, ...]:
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
    unrelated: ItemPlaces = EMPTY,
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
    run.stages.enter(f"scoring neurons on {task}")
    every = run.item_sets(places)
    chosen = [index for index, columns in enumerate(every) if len(columns)]
    if not chosen:
        raise BadInput(
            f"no neuron of any item of '{task}' stands out: lower `sigma` or give `count`"
        )
    places, sets = places[chosen], [every[index] for index in chosen]
    others = unrelated[np.arange(len(sets)) % len(unrelated)] if len(unrelated) else EMPTY
    all_places = np.concatenate([places, others])
    run.stages.enter(INTACT)
    before = np.exp(
        run.log_probability(all_places, [EMPTY], np.zeros(len(all_places), dtype=np.intp))
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
        run.stages.enter(f"scaling by {factor:g}")
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
