"""Reads the requests and measurements of runs, as matrices."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput, NotInJournal
from broca.journal.files import damaged
from broca.journal.keys import ItemRecord, components_digest, mask_digests
from broca.journal.store import Ids, Journal
from broca.results.runs import RunEntry


@dataclass(frozen=True, kw_only=True)
class RunRecord(RunEntry):
    """A run of a journal, with what it was measured on.

    Attributes:
        components: Names of the components, in column order.
        items: Ids of the bank of items, in the order of positions in plans.
    """

    components: tuple[str, ...]
    items: Ids


@dataclass(frozen=True)
class RunRows:
    """Rows that a run requested, in the order of its plans, with their responses.

    Attributes:
        components: Names of the columns.
        masks: The distinct masks, `(masks, components)`.
        items: The distinct items.
        mask_index: Mask of every row, `(rows,)`.
        item_index: Item of every row, `(rows,)`.
        responses: Responses, higher is better, `(rows,)`.
        gradients: Gradients, `(rows, components)`, if they were requested.
    """

    components: tuple[str, ...]
    masks: NDArray[np.bool_]
    items: tuple[ItemRecord, ...]
    mask_index: NDArray[np.intp]
    item_index: NDArray[np.intp]
    responses: NDArray[np.float64]
    gradients: NDArray[np.float32] | None = None


def read_runs(journal: Journal) -> list[RunRecord]:
    """Returns all runs, the oldest first."""
    return [
        RunRecord(
            id=number,
            digest=digest.hex(),
            settings=json.loads(settings),
            search=json.loads(search),
            components=tuple(json.loads(names)),
            items=np.frombuffer(items, dtype="<i8").astype(np.int64),
            process=process,
            finished=finished,
            rows=rows,
            tokens=tokens,
        )
        for number, digest, settings, search, names, items, process, finished, rows, tokens in (
            journal.query(
                "SELECT runs.id, runs.digest, settings, search, components.names, items, process, "
                "finished, coalesce(sum(batches.rows), 0), coalesce(sum(batches.tokens), 0) "
                "FROM runs JOIN components ON components.id = runs.components "
                "LEFT JOIN batches ON batches.run = runs.id GROUP BY runs.id ORDER BY runs.id"
            )
        )
    ]


def find_run(journal: Journal, digest: str | None = None) -> RunRecord:
    """Returns the run of a digest, or the newest run.

    Raises:
        BadInput: The journal holds no such run.
    """
    runs = read_runs(journal)
    matching = [run for run in runs if digest in (None, run.digest)]
    if not matching:
        raise BadInput(
            f"journal '{journal.name}' holds no such run: give the journal that the run was "
            "written to"
        )
    return matching[-1]


def read_run(journal: Journal, run: int, *, role: str = "search") -> RunRows:
    """Reads the rows that a run requested.

    Args:
        journal: An open journal.
        run: Number of the run.
        role: `search` for the rows of the search, `scores` for those of the verification.

    Raises:
        NotInJournal: Some rows were not measured, because the run was interrupted.
        BadInput: The run requested no rows, or rows under several conditions.
        JournalDamaged: A row was altered.
    """
    plans = journal.query(
        "SELECT condition, masks, items FROM plans WHERE run = ? AND role = ? ORDER BY number",
        (run, role),
    )
    if not plans:
        raise BadInput(f"run {run} of journal '{journal.name}' asked for no rows of its {role}")
    conditions = {condition for condition, _, _ in plans}
    if len(conditions) > 1:
        raise BadInput(
            f"run {run} of journal '{journal.name}' measured its {role} in {len(conditions)} "
            "ways: read it plan by plan"
        )
    (condition,) = conditions
    mask_ids = np.concatenate([np.frombuffer(masks, dtype="<i8") for _, masks, _ in plans])
    item_ids = np.concatenate([np.frombuffer(items, dtype="<i8") for _, _, items in plans])
    known, responses = journal.known(condition, mask_ids, item_ids)
    if not known.all():
        raise NotInJournal(
            f"{int((~known).sum())} of {len(known)} rows of run {run} are not in journal "
            f"'{journal.name}': give the command of the run again, which goes on where it ended"
        )
    distinct_masks, mask_index = np.unique(mask_ids, return_inverse=True)
    distinct_items, item_index = np.unique(item_ids, return_inverse=True)
    names, masks = _masks(journal, distinct_masks)
    (with_gradients,) = journal.query("SELECT gradients FROM conditions WHERE id = ?", (condition,))
    return RunRows(
        components=names,
        masks=masks,
        items=_items(journal, distinct_items),
        mask_index=mask_index.astype(np.intp),
        item_index=item_index.astype(np.intp),
        responses=responses,
        gradients=journal.gradients(condition, mask_ids, item_ids, components=len(names))
        if with_gradients[0]
        else None,
    )


def _masks(journal: Journal, ids: Ids) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Returns the names of the columns, and the masks of some ids, `(masks, components)`."""
    names: tuple[str, ...] = ()
    packed = []
    digests = []
    for mask in ids.tolist():
        ((digest, bits, listed),) = journal.query(
            "SELECT masks.digest, ablated, names FROM masks "
            "JOIN components ON components.id = masks.components WHERE masks.id = ?",
            (mask,),
        )
        names = names or tuple(json.loads(listed))
        packed.append(np.frombuffer(bits, dtype=np.uint8))
        digests.append(digest)
    masks = np.unpackbits(np.stack(packed), axis=1, count=len(names)).astype(bool)
    if mask_digests(masks, components_digest(names)) != digests:
        raise damaged(journal.name, "a mask was altered")
    return names, masks


def _items(journal: Journal, ids: Ids) -> tuple[ItemRecord, ...]:
    records = []
    for item in ids.tolist():
        (record,) = journal.query(
            "SELECT digest, task, number, prompt, target FROM items WHERE id = ?", (item,)
        )
        records.append(ItemRecord(*record))
    return tuple(records)
