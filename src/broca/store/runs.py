"""Reads what runs requested and measured: as a list, as matrices, as a table, or once more."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput, NotInJournal
from broca.measurement import Measurement, Plan
from broca.results.files import writes
from broca.results.runs import JournalRun
from broca.store.journal import Journal
from broca.store.records import Condition, Ids, ItemRecord

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunRows:
    """Distinct rows that a run requested and that were measured, in the order of its plans.

    Attributes:
        components: Names of the columns.
        condition: What the rows were measured under.
        masks: Ablated components of every row, `(rows, components)`.
        items: Id of every row's item, `(rows,)`.
        records: The items of all runs by id.
        responses: Responses, higher is better, `(rows,)`.
        gradients: Gradients, `(rows, components)`, if they were requested.
    """

    components: tuple[str, ...]
    condition: Condition
    masks: NDArray[np.bool_]
    items: Ids
    records: dict[int, ItemRecord]
    responses: NDArray[np.float64]
    gradients: NDArray[np.float32] | None = None


def read_runs(journal: Journal) -> list[JournalRun]:
    """Returns all runs, the oldest first."""
    rows: Counter[int] = Counter()
    tokens: Counter[int] = Counter()
    for batch in journal.lines("batches"):
        rows[batch.run] += batch.rows if batch.kind == "rows" else 0
        tokens[batch.run] += batch.tokens
    return [
        JournalRun(
            id=run.id, digest=run.digest.hex(), settings=json.loads(run.settings),
            search=json.loads(run.search), process=run.process, finished=run.finished,
            rows=rows[run.id], tokens=tokens[run.id],
            components=len(journal.names(run.components)), items=len(run.items) // 8,
        )
        for run in journal.lines("runs")
    ]  # fmt: skip


def find_run(journal: Journal, digest: str | None = None) -> JournalRun:
    """Returns the run of a digest, or the newest run.

    Raises:
        BadInput: The journal holds no such run.
    """
    matching = [run for run in read_runs(journal) if digest in (None, run.digest)]
    if not matching:
        raise BadInput(
            f"journal '{journal.name}' holds no such run: give the journal that the run was "
            "written to"
        )
    return matching[-1]


def read_run(journal: Journal, run: int, *, role: str = "search") -> RunRows:
    """Reads the rows that a run requested.

    Rows under another condition than the first, and rows that were not measured yet, are left out.

    Args:
        journal: An open journal.
        run: Number of the run.
        role: `search` for the rows of the search, `scores` for those of the verification.

    Raises:
        NotInJournal: No row was measured.
        JournalDamaged: A row was altered.
    """
    plans = list(journal.lines("plans", "run = ? AND role = ?", run, role))
    condition = plans[0].condition if plans else 0
    keys = np.concatenate(
        [_ids(b""), *(_ids(plan.keys) for plan in plans if plan.condition == condition)]
    )
    entries = journal.find("rows", condition, keys[np.sort(np.unique(keys, return_index=True)[1])])
    entries = entries[entries["batch"] > 0]
    if not len(entries):
        raise NotInJournal(
            f"journal '{journal.name}' holds no rows of the {role} of run {run}: give the run's "
            "command again"
        )
    components = journal.line("runs", run).components
    under = read_condition(journal, condition)
    return RunRows(
        components=journal.names(components), condition=under,
        masks=journal.ablated(entries["key"] >> 32, components),
        items=entries["key"] & 0xFFFFFFFF, records=read_items(journal),
        responses=entries["response"],
        gradients=read_gradients(journal, entries) if under.gradients else None,
    )  # fmt: skip


def read_items(journal: Journal) -> dict[int, ItemRecord]:
    """Returns all items by their ids."""
    return {line.id: ItemRecord(*line[1:]) for line in journal.lines("items")}


def read_condition(journal: Journal, condition: int) -> Condition:
    """Returns the condition of an id."""
    return Condition.read(journal.line("conditions", condition).text)


def read_gradients(journal: Journal, entries: NDArray[np.void]) -> NDArray[np.float32]:
    """Returns the gradients of known rows, `(rows, components)`."""
    return np.array([np.frombuffer(blob or b"", "<f4") for blob in journal.contents(entries)])


class Replay:
    """Returns the recorded responses of a run, plan by plan, without a model.

    Args:
        journal: An open journal, read-only or not.
        run: Number of the run.
        role: Purpose of the plans.
    """

    def __init__(self, journal: Journal, run: int, *, role: str = "search") -> None:
        self._journal = journal
        self._plans = list(journal.lines("plans", "run = ? AND role = ?", run, role))
        self._components = journal.line("runs", run).components
        self._answered = 0
        self._places: dict[int, int] = {}

    def run(self, plan: Plan) -> Measurement:
        """Reads the rows of the next plan, which must equal the recorded plan.

        Raises:
            NotInJournal: The run ended before, or requested other rows.
        """
        number = self._answered
        if number == len(self._plans):
            raise self._missing(f"the run ended after {number} plans")
        condition, keys = self._plans[number].condition, _ids(self._plans[number].keys)
        masks = self._journal.ablated(keys >> 32, self._components)
        if not np.array_equal(masks, plan.masks[plan.mask_index]):
            raise self._missing(f"plan {number} asked for other masks")
        # a bank may be numbered otherwise, but a position stands for one item in all plans
        pairs = zip(plan.item_index.tolist(), (keys & 0xFFFFFFFF).tolist(), strict=True)
        if not all(self._places.setdefault(place, item) == item for place, item in pairs):
            raise self._missing(f"plan {number} asked for other items")
        entries = self._journal.find("rows", condition, keys)
        missing = int((entries["batch"] == 0).sum())
        if missing:
            raise self._missing(f"{missing} of {len(keys)} rows were not measured")
        self._answered += 1
        gradients = read_gradients(self._journal, entries) if plan.gradients else None
        return Measurement(plan, entries["response"], gradients)

    def _missing(self, what: str) -> NotInJournal:
        return NotInJournal(
            f"the run cannot be repeated from journal '{self._journal.name}' ({what}): give its "
            "command again, which goes on where it ended"
        )


def copy_vectors(journal: Journal, to: Journal, *, role: str) -> None:
    """Adds the vectors of a role to another journal, unless it has them."""
    for batch in journal.lines("batches", "kind = 'vectors' AND role = ?", role):
        condition, keys = to.condition(read_condition(journal, batch.condition)), _ids(batch.keys)
        if not to.find("vectors", condition, keys)["batch"].all():
            found = journal.contents(journal.find("vectors", batch.condition, keys))
            to.write(
                run=0, role=role, kind="vectors", condition=condition, keys=keys,
                contents=[vector or b"" for vector in found],
            )  # fmt: skip


def table_of_rows(journal: Journal) -> pd.DataFrame:
    """Returns a table with a line for each row: its condition, item, mask, value and output.

    `ablated` are the names of the components that the row's mask ablates, joined by `+`.
    """
    import pandas as pd

    items = read_items(journal)
    frames = [pd.DataFrame(columns=["value"])]
    for batch in journal.lines("batches", "kind = 'rows'"):
        keys = _ids(batch.keys)
        components = journal.line("runs", batch.run).components
        names = np.array(journal.names(components))
        records = [items[item] for item in (keys & 0xFFFFFFFF).tolist()]
        texts = journal.contents(journal.find("outputs", batch.condition, keys))
        frame = pd.DataFrame({
            "task": [record.task for record in records],
            "item": [record.number for record in records],
            "item_digest": [record.digest.hex() for record in records],
            "ablated": ["+".join(names[mask]) for mask in journal.ablated(keys >> 32, components)],
            "value": np.frombuffer(batch.responses, "<f8"),
            "output": [text and text.decode() for text in texts],
        })  # fmt: skip
        frames.append(frame.assign(**asdict(read_condition(journal, batch.condition))))
    return pd.concat(frames[1:] or frames, ignore_index=True)


def export_rows(journal: Journal, path: str | Path) -> int:
    """Writes a line for each row to a .csv file, and returns their number.

    Raises:
        BadInput: The name has another ending, or the file cannot be written.
    """
    if Path(path).suffix != ".csv":
        raise BadInput(f"the name of export '{path}' must end in .csv")
    table = table_of_rows(journal)
    with writes(f"export '{path}'", advice="choose another place"):
        table.to_csv(path, index=False)
    return len(table)


def _ids(blob: bytes) -> Ids:
    return np.frombuffer(blob, dtype="<i8").astype(np.int64)
