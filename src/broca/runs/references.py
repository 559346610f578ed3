"""Reference answers of margins, and the items that have one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from broca.errors import TaskUnusable
from broca.measurement import Response
from broca.runs.task_sets import Bank, IntactAnswers
from broca.tasks import Generation
from broca.verification.trial import Places


@dataclass(frozen=True)
class Referenced:
    """The items and the response that rows can have.

    Attributes:
        bank: The run's items; their tasks know right answers if the response is a margin.
        places: Positions of each measured task's usable items.
        response: Response of the rows.
        continuous: Whether every one of these items has a margin.
        notes: The number of omitted items, task by task.
    """

    bank: Bank
    places: Places
    response: Response
    continuous: bool = False
    notes: tuple[str, ...] = ()


def with_references(
    response: Response, answer: IntactAnswers, bank: Bank, places: Places, *, otherwise: str | None
) -> Referenced:
    """Finds the reference answers that a response needs.

    If a task uses the model's own answers, the intact model generates them. Answers that the task's
    metric accepts are references; items without a reference are left out.

    Args:
        response: Response of the rows; accuracy needs no reference.
        answer: Answers the requests of items with the intact model.
        bank: The run's items.
        places: Positions of each measured task's items.
        otherwise: Note for the case that a task has no reference answer and rows return accuracy
            instead; None if accuracy is no alternative.

    Raises:
        TaskUnusable: No item of a task has a reference answer, and `otherwise` is None.
    """
    if response == "accuracy":
        return Referenced(bank, places, response)
    positions = [position for items in places.values() for position in items.tolist()]
    try:
        answered = with_model_answers(answer, bank, positions)
        usable = {p for p in positions if answered[p][0].margin(answered[p][1]) is not None}
        notes = _notes(answered, places, usable)
    except TaskUnusable as error:
        if otherwise is None:
            raise
        return Referenced(bank, places, "accuracy", notes=(f"{otherwise}: {error}",))
    with_margin = {name: items[np.isin(items, sorted(usable))] for name, items in places.items()}
    return Referenced(answered, with_margin, response, continuous=True, notes=notes)


def with_model_answers(answer: IntactAnswers, bank: Bank, positions: Sequence[int]) -> Bank:
    """Returns the bank whose tasks know the intact model's own right answers if they use them."""
    unanswered = [position for position in positions if bank[position][0].wants_own_answers]
    if not unanswered:
        return bank
    texts: dict[str, dict[int, str]] = {bank[position][0].name: {} for position in unanswered}
    for position, (output, *_) in zip(unanswered, answer(unanswered), strict=True):
        benchmark, item = bank[position]
        if isinstance(output, Generation) and benchmark.right(item, output.text):
            text = benchmark.own_answer(item, output.text, output.first)
            texts[benchmark.name][item.number] = text
    benchmarks = {benchmark.name: benchmark for benchmark, _ in bank}
    benchmarks |= {name: benchmarks[name].answered(answers) for name, answers in texts.items()}
    return [(benchmarks[benchmark.name], item) for benchmark, item in bank]


def _notes(bank: Bank, places: Places, usable: set[int]) -> tuple[str, ...]:
    """Returns notes on the number of items of each task without a margin.

    Raises:
        TaskUnusable: No item of a task has a margin.
    """
    notes = []
    for items in places.values():
        positions = items.tolist()
        if not positions:
            continue
        benchmark = bank[positions[0]][0]
        omitted = sum(position not in usable for position in positions)
        missing, lacking = "the intact model's own answer is right", "the intact model fails them"
        if not benchmark.wants_own_answers:
            missing = "the task gives a full answer that its metric accepts"
            lacking = "the task gives no full answer to them"
        if omitted == len(positions):
            reference = "gold" if benchmark.wants_own_answers else "own"
            raise TaskUnusable(
                f"no item of task '{benchmark.name}' has a margin ({missing} on none of "
                f"{omitted}): use `response` accuracy or `reference` {reference}"
            )
        if omitted:
            notes.append(
                f"the search leaves out {omitted} of {len(positions)} items of {benchmark.name}: "
                f"{lacking}"
            )
    return tuple(notes)
