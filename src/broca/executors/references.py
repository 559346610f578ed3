"""Right answers for the margins of generations: the intact model's own, where they are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from broca.errors import TaskUnusable
from broca.executors.base import Answerer
from broca.tasks import Benchmark, Generation, Item


@dataclass(frozen=True)
class Referenced:
    """Items whose margin can be asked.

    Attributes:
        bank: The items by position, each with its task, which now knows the right answers.
        positions: Those of the wanted items that have a margin.
        notes: What was left out, task by task.
    """

    bank: list[tuple[Benchmark, Item]]
    positions: list[int]
    notes: tuple[str, ...]


def with_references(
    engine: Answerer,
    bank: Sequence[tuple[Benchmark, Item]],
    positions: Sequence[int],
    *,
    components: int,
) -> Referenced:
    """Finds a right answer for every item, and leaves out those without.

    Args:
        engine: Of the model; where a task wants the model's own answers it generates them, intact.
        bank: The items by position, each with the task that scores it.
        positions: The items whose margins are wanted.
        components: How many components the model has.

    Raises:
        TaskUnusable: No item of a task has a right answer.
    """
    wanted = [p for p in positions if bank[p][0].wants_own_answers]
    asked = [(position, request) for position in wanted for request in bank[position][1].requests]
    answers: dict[str, dict[int, str]] = {bank[position][0].name: {} for position in wanted}
    intact = np.ones((1, components), dtype=np.float32)
    outputs = engine.run([one for _, one in asked], intact, np.zeros(len(asked), dtype=np.intp))
    for (position, _), output in zip(asked, outputs, strict=True):
        benchmark, item = bank[position]
        if isinstance(output, Generation) and benchmark.right(item, output.text):
            answers[benchmark.name][item.number] = output.text
    known = {one.name: one for one, _ in bank}
    known |= {name: known[name].answered(found) for name, found in answers.items()}
    referenced = [(known[one.name], item) for one, item in bank]
    kept = [p for p in positions if referenced[p][0].margin(referenced[p][1]) is not None]
    return Referenced(referenced, kept, tuple(_notes(referenced, positions, kept)))


def _notes(
    bank: Sequence[tuple[Benchmark, Item]], positions: Sequence[int], kept: Sequence[int]
) -> list[str]:
    notes = []
    for name in dict.fromkeys(bank[position][0].name for position in positions):
        own = [position for position in positions if bank[position][0].name == name]
        left = len(own) - len(set(own) & set(kept))
        benchmark = bank[own[0]][0]
        missing = "the intact model's own answer is right"
        if not benchmark.wants_own_answers:
            missing = "the task gives a full answer that its metric accepts"
        if left == len(own):
            other = "gold" if benchmark.wants_own_answers else "own"
            raise TaskUnusable(
                f"no item of task '{name}' has a margin ({missing} on none of {left}): use "
                f"--response accuracy or --reference {other}"
            )
        if left:
            notes.append(
                f"{left} of {len(own)} items of {name} were left out of the margin: {missing} on "
                "the others only"
            )
    return notes
