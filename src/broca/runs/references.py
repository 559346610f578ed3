"""What a search asks its rows for: margins, where right answers are known, else metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from broca.engine import Engine
from broca.errors import TaskUnusable
from broca.executors import RayPool, with_references
from broca.measurement import Response
from broca.runs.task_sets import Bank, Places


@dataclass(frozen=True)
class Asked:
    """What rows are asked for.

    Attributes:
        bank: The run's items; where margins are asked for, their tasks know right answers.
        places: Positions of each measured task's items that can be asked.
        response: What rows return.
        continuous: Whether every one of these items has a margin.
        notes: What the reader should know of it.
    """

    bank: Bank
    places: Places
    response: Response
    continuous: bool = False
    notes: tuple[str, ...] = ()


def with_margins(
    response: Response,
    engine: Engine | RayPool,
    bank: Bank,
    places: Places,
    *,
    components: int,
    otherwise: str | None,
) -> Asked:
    """Finds the right answers that a response needs.

    Args:
        response: What rows should return; accuracy needs none.
        engine: Of the model, whose own answers a task may want.
        bank: The run's items.
        places: Positions of each measured task's items.
        components: How many components the model has.
        otherwise: Where a task has no right answer, rows return accuracy instead and this is noted;
            None where nothing else will do.

    Raises:
        TaskUnusable: A task has no right answer, and nothing else will do.
    """
    if response == "accuracy":
        return Asked(bank, places, response)
    positions = [position for own in places.values() for position in own.tolist()]
    try:
        found = with_references(engine, bank, positions, components=components)
    except TaskUnusable as error:
        if otherwise is None:
            raise
        return Asked(bank, places, "accuracy", notes=(f"{otherwise}: {error}",))
    kept = {name: own[np.isin(own, found.positions)] for name, own in places.items()}
    return Asked(found.bank, kept, response, continuous=True, notes=found.notes)
