"""A new ranking from the rows that a run measured; no model is loaded."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.components import Component, ComponentSet
from broca.errors import BadInput, NotInJournal
from broca.journal import Journal
from broca.journal.encoding import decoded
from broca.journal.reading import RunRecord, find_run
from broca.recovery import recovery_name
from broca.recovery.uncertainty import RESAMPLES
from broca.results.localization import AdditivityInfo, ranked
from broca.results.refit import Refit
from broca.runs.folder import RunFolder
from broca.searches import Problem, require_method
from broca.searches.regression import rank_by_regression

_FEWEST = 3


def refit(
    folder: str | Path, *, recovery: Any = "lasso", k: int | None = None, resamples: int = RESAMPLES
) -> Refit:
    """Ranks anew from the rows of an out folder's journal.

    Of every mask that the search measured on the task, the mean change against the intact model on
    the same items is regressed on what the mask ablates. Rows of other tasks, and rows in another
    response than the search's first, are left out.

    Args:
        folder: The out folder of a run of `broca localize`, finished or not.
        recovery: Name of a recovery, or any scikit-learn regressor with `coef_`.
        k: Most components to select; the run's own by default.
        resamples: Resamples of the masks; 0 leaves out intervals and frequencies.

    Raises:
        BrocaError: The folder holds no such run, or its journal not enough of it.
    """
    if k is not None and k < 1:
        raise BadInput(f"--k must be at least 1, not {k}")
    run_folder = RunFolder.read(folder)
    if run_folder.record["asked"].get("verb") != "localize":
        raise BadInput(f"'{folder}' holds no run of `broca localize`: only those can be refitted")
    with Journal(run_folder.journal, read_only=True) as journal:
        run = find_run(journal, run_folder.record["digests"].get("run"))
        if not run.search:
            raise NotInJournal(
                f"the run of '{folder}' ended before its search began: give its command again"
            )
        problem = Problem.restored(decoded(run.search["problem"]))
        rows = _rows(journal, run, problem)
    masks, changes = _points(rows)
    if require_method(str(run.search["method"])).one_mask_size:
        sizes = masks.sum(axis=1)
        usual = sizes == np.bincount(sizes).argmax()
        masks, changes = masks[usual], changes[usual]
    if k is not None:
        problem = Problem(problem.components, problem.items, k, problem.rows, problem.seed)
    found = rank_by_regression(problem, masks, changes, recovery, resamples=resamples)
    components = ComponentSet(tuple(Component.parse(name) for name in run.components))
    return Refit(
        task=str(run.settings["task"]),
        method=str(run.search["method"]),
        recovery=recovery_name(recovery),
        response=rows.response,
        rows=len(rows.responses),
        masks=len(masks),
        ranking=ranked(components, found.effects, found.order, **found.details),
        selected=tuple(components.names[column] for column in found.selected),
        reason=found.reason,
        additivity=None if found.additivity is None else AdditivityInfo(**asdict(found.additivity)),
        notes=found.notes,
    )


@dataclass(frozen=True)
class _Rows:
    """Distinct rows of the task: ablated components, item and response of each."""

    masks: NDArray[np.bool_]
    items: NDArray[np.int64]
    responses: NDArray[np.float64]
    response: str


def _rows(journal: Journal, run: RunRecord, problem: Problem) -> _Rows:
    """The rows that the search measured on its task, each once, in the order they were asked.

    Raises:
        NotInJournal: There are none.
    """
    plans = journal.query(
        "SELECT condition, masks, items FROM plans WHERE run = ? AND role = 'search' "
        "ORDER BY number",
        (run.id,),
    )
    pairs: dict[tuple[int, int], None] = {}
    for condition, masks, items in plans:
        if condition == plans[0][0]:
            asked = np.frombuffer(masks, dtype="<i8"), np.frombuffer(items, dtype="<i8")
            pairs |= dict.fromkeys(zip(asked[0].tolist(), asked[1].tolist(), strict=True))
    others = [place for one in problem.others for place in (*one.items, *one.confirm)]
    elsewhere = set(_questions(journal, {int(run.items[place]) for place in others}).values())
    own = _questions(journal, {item for _, item in pairs})
    kept = [pair for pair in pairs if own[pair[1]] not in elsewhere]
    mask_ids = np.array([mask for mask, _ in kept], dtype=np.int64)
    item_ids = np.array([item for _, item in kept], dtype=np.int64)
    if kept:
        there, responses = journal.known(plans[0][0], mask_ids, item_ids)
        mask_ids, item_ids, responses = mask_ids[there], item_ids[there], responses[there]
    if not kept or not len(mask_ids):
        raise NotInJournal(
            f"journal '{journal.name}' holds no rows of the search: give the run's command again"
        )
    ((response,),) = journal.query("SELECT response FROM conditions WHERE id = ?", (plans[0][0],))
    count = len(run.components)
    distinct, index = np.unique(mask_ids, return_inverse=True)
    ablated = np.zeros((len(distinct), count), dtype=bool)
    for row, one in enumerate(distinct.tolist()):
        ((bits,),) = journal.query("SELECT ablated FROM masks WHERE id = ?", (one,))
        ablated[row] = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=count)
    return _Rows(ablated[index], item_ids, responses, str(response))


def _questions(journal: Journal, ids: set[int]) -> dict[int, tuple[str, int]]:
    """Task and number of items: what asks for a margin is another item of the same question."""
    found = {}
    for one in ids:
        ((task, number),) = journal.query("SELECT task, number FROM items WHERE id = ?", (one,))
        found[one] = (task, number)
    return found


def _points(rows: _Rows) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Every mask with its mean change against the intact model.

    Raises:
        BadInput: There are too few to fit anything to.
    """
    ablating = rows.masks.any(axis=1)
    intact = dict(
        zip(rows.items[~ablating].tolist(), rows.responses[~ablating].tolist(), strict=True)
    )
    usable = np.flatnonzero(ablating & np.isin(rows.items, list(intact)))
    packed = np.packbits(rows.masks[usable], axis=1)
    _, first, index = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    if len(first) < _FEWEST:
        raise BadInput(
            f"the run measured {len(first)} masks on items of the intact model: too few to refit; "
            "give its command again, with more --rows"
        )
    order = np.argsort(first)  # as they were asked: folds and resamples are drawn by place
    rank = np.argsort(order)[index.ravel()]
    changes = rows.responses[usable] - [intact[one] for one in rows.items[usable].tolist()]
    means = np.bincount(rank, weights=changes) / np.bincount(rank)
    return rows.masks[usable][first[order]], means
