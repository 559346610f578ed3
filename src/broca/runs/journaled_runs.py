"""Reads the measurements of earlier runs of `localize` from their journals, without a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from broca import searches
from broca.errors import BadInput, NotInJournal
from broca.journal import Journal, Replay
from broca.journal.encoding import decoded
from broca.journal.reading import RunRecord
from broca.runs.folder import RunFolder
from broca.searches import Problem, Ranking

_FEWEST_MASKS = 3


@dataclass(frozen=True)
class TaskRows:
    """The distinct rows that a search measured on its task.

    Attributes:
        masks: Ablated components of every row, `(rows, components)`.
        items: Journal id of every row's item, `(rows,)`.
        responses: Response of every row, `(rows,)`.
        response: Kind of the responses.
    """

    masks: NDArray[np.bool_]
    items: NDArray[np.int64]
    responses: NDArray[np.float64]
    response: str


def localized_in(folder: str | Path) -> RunFolder:
    """Reads the folder of a run of `broca localize`, finished or not.

    Raises:
        BadInput: The folder contains no such run.
    """
    run_folder = RunFolder.read(folder)
    if run_folder.record.verb != "localize":
        raise BadInput(f"'{folder}' holds no run of `broca localize`: give the folder of one")
    return run_folder


def problem_of_run(journal: Journal, run: RunRecord) -> Problem:
    """Returns the problem that a run's search had to solve.

    Raises:
        NotInJournal: The run ended before its search began.
    """
    if not run.search:
        raise NotInJournal(
            f"run {run.id} of journal '{journal.name}' ended before its search began: give its "
            "command again"
        )
    return Problem.restored(decoded(run.search["problem"]))


def ranking_from_journal(journal: Journal, run: RunRecord) -> Ranking:
    """Repeats a run's search with the responses that its journal holds.

    Raises:
        NotInJournal: The run was interrupted before its search ended.
    """
    problem = problem_of_run(journal, run)
    search = searches.make_search(run.search["method"], problem, **run.search["options"])
    return searches.run(search, Replay(journal, run.id, components=run.components).run)


def task_rows(journal: Journal, run: RunRecord, problem: Problem) -> TaskRows:
    """Returns the distinct rows that a search measured on its task, in the order of its plans.

    Rows with another response than the first of the search are left out.

    Raises:
        NotInJournal: The journal contains no such rows.
    """
    plans = journal.query(
        "SELECT condition, masks, items FROM plans WHERE run = ? AND role = 'search' "
        "ORDER BY number",
        (run.id,),
    )
    pairs: dict[tuple[int, int], None] = {}
    for condition, masks, items in plans:
        if condition == plans[0][0]:
            ids = (np.frombuffer(blob, dtype="<i8").tolist() for blob in (masks, items))
            pairs |= dict.fromkeys(zip(*ids, strict=True))
    other_places = [place for task in problem.others for place in (*task.items, *task.confirm)]
    other_questions = _questions(journal, {int(run.items[place]) for place in other_places})
    elsewhere = set(other_questions.values())
    questions = _questions(journal, {item for _, item in pairs})
    of_task = [pair for pair in pairs if questions[pair[1]] not in elsewhere]
    mask_ids = np.array([mask for mask, _ in of_task], dtype=np.int64)
    item_ids = np.array([item for _, item in of_task], dtype=np.int64)
    responses = np.empty(0)
    if of_task:
        measured, responses = journal.known(plans[0][0], mask_ids, item_ids)
        mask_ids, item_ids, responses = mask_ids[measured], item_ids[measured], responses[measured]
    if not len(mask_ids):
        raise NotInJournal(
            f"journal '{journal.name}' holds no rows of the search: give the run's command again"
        )
    ((response,),) = journal.query("SELECT response FROM conditions WHERE id = ?", (plans[0][0],))
    distinct, index = np.unique(mask_ids, return_inverse=True)
    ablated = np.zeros((len(distinct), len(run.components)), dtype=bool)
    for row, mask in enumerate(distinct.tolist()):
        ((bits,),) = journal.query("SELECT ablated FROM masks WHERE id = ?", (mask,))
        ablated[row] = np.unpackbits(np.frombuffer(bits, np.uint8), count=len(run.components))
    return TaskRows(ablated[index], item_ids, responses, str(response))


def mask_changes(rows: TaskRows) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Returns every mask with its mean change from the intact model on the same items.

    Returns:
        The distinct masks in the order of the plans, `(masks, components)`, and the changes,
        `(masks,)`.

    Raises:
        BadInput: There are too few masks for a regression.
    """
    ablating = rows.masks.any(axis=1)
    intact = dict(
        zip(rows.items[~ablating].tolist(), rows.responses[~ablating].tolist(), strict=True)
    )
    usable = np.flatnonzero(ablating & np.isin(rows.items, list(intact)))
    packed = np.packbits(rows.masks[usable], axis=1)
    _, first, index = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    if len(first) < _FEWEST_MASKS:
        raise BadInput(
            f"the run measured {len(first)} masks on items of the intact model: too few to refit; "
            "give its command again, with more `rows`"
        )
    order = np.argsort(first)  # in the order of the plans: folds are drawn by position
    rank = np.argsort(order)[index.ravel()]
    changes = rows.responses[usable] - [intact[item] for item in rows.items[usable].tolist()]
    means = np.bincount(rank, weights=changes) / np.bincount(rank)
    return rows.masks[usable][first[order]], means


def _questions(journal: Journal, items: Iterable[int]) -> dict[int, tuple[str, int]]:
    """Task and number of items; the margin of a question is another item of the journal."""
    questions = {}
    for item in items:
        ((task, number),) = journal.query("SELECT task, number FROM items WHERE id = ?", (item,))
        questions[item] = (task, number)
    return questions
