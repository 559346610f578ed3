"""Reads the measurements of earlier runs of `localize` from their journals, without a model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from broca import searches
from broca.errors import BadInput, NotInJournal
from broca.results.runs import JournalRun
from broca.runs.folder import RunFolder
from broca.searches import Problem, Ranking
from broca.store import Journal, Replay, RunRows, read_run, restored

_FEWEST_MASKS = 3


def localized_in(folder: str | Path) -> RunFolder:
    """Reads the folder of a run of `broca localize`, finished or not.

    Raises:
        BadInput: The folder contains no such run.
    """
    run_folder = RunFolder.read(folder)
    if run_folder.record.verb != "localize":
        raise BadInput(f"'{folder}' holds no run of `broca localize`: give the folder of one")
    return run_folder


def problem_of_run(journal: Journal, run: JournalRun) -> Problem:
    """Returns the problem that a run's search had to solve.

    Raises:
        NotInJournal: The run ended before its search began.
    """
    if not run.search:
        raise NotInJournal(
            f"run {run.id} of journal '{journal.name}' ended before its search began: give its "
            "command again"
        )
    return restored(run.search["problem"], Problem)


def ranking_from_journal(journal: Journal, run: JournalRun) -> Ranking:
    """Repeats a run's search with the responses that its journal holds.

    Raises:
        NotInJournal: The run was interrupted before its search ended.
    """
    problem = problem_of_run(journal, run)
    method = searches.require_method(run.search["method"])
    search = method.search(problem, run.search["options"])
    return searches.run(search, Replay(journal, run.id).run)


def task_rows(journal: Journal, run: JournalRun, problem: Problem) -> RunRows:
    """Returns the distinct rows that a search measured on its task, in the order of its plans.

    Rows with another response than the first of the search are left out.

    Raises:
        NotInJournal: The journal contains no such rows.
    """
    rows = read_run(journal, run.id)
    bank = journal.bank(run.id)
    # the margin of a question is another item of the journal
    questions = {item: (record.task, record.number) for item, record in rows.records.items()}
    others = [bank[place] for task in problem.others for place in (*task.items, *task.confirm)]
    elsewhere = {questions[item] for item in others}
    chosen = [questions[item] not in elsewhere for item in rows.items.tolist()]
    if not any(chosen):
        raise NotInJournal(
            f"journal '{journal.name}' holds no rows of the search: give the run's command again"
        )
    return replace(
        rows, masks=rows.masks[chosen], items=rows.items[chosen],
        responses=rows.responses[chosen], gradients=None,
    )  # fmt: skip


def mask_changes(rows: RunRows) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
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
            f"the run measured {len(first)} masks on items of the intact model: too few to refit, "
            "which needs a run of a method with random masks, with more `rows`"
        )
    if rows.masks.sum(axis=1).max() < 2:
        raise BadInput(
            "the run ablated components alone, so that a refit has nothing to tell apart"
        )
    order = np.argsort(first)  # in the order of the plans: folds are drawn by position
    rank = np.argsort(order)[index.ravel()]
    changes = rows.responses[usable] - [intact[item] for item in rows.items[usable].tolist()]
    means = np.bincount(rank, weights=changes) / np.bincount(rank)
    return rows.masks[usable][first[order]], means
