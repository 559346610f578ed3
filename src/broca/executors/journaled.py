"""Asks the journal first: what is known is not measured again, what is measured is kept at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadResponse
from broca.executors.base import Executor
from broca.journal import Condition, Journal
from broca.plan import Measurement, Plan


@dataclass
class Recording:
    """One run as it is written to a journal; the executors of the run share it.

    Attributes:
        journal: Where rows go.
        run: Number of the run in it.
        components: Id of the components in it.
        items: Id of every item of the bank in it, `(items,)`.
        lengths: Tokens that a row of each item takes, `(items,)`.
        chunk_tokens: Tokens of the rows that are measured and committed together.
        keep_outputs: Share of the rows whose raw output is kept, drawn by mask and item.
        tokens: Tells the tokens that the model has read or written so far.
        measuring: Entered around every measurement, to put off an interruption.
        checkpoint: Called after every commit; it may end the run by raising.
        on_chunk: Told before every chunk how many rows of the plan are done, how many the chunk
            has, and how many the plan.
        plans: Plans noted so far.
    """

    journal: Journal
    run: int
    components: int
    items: NDArray[np.int64]
    lengths: NDArray[np.int64]
    chunk_tokens: int
    keep_outputs: float = 0.0
    tokens: Callable[[], int] = lambda: 0
    measuring: Callable[[], AbstractContextManager[Any]] = nullcontext
    checkpoint: Callable[[], None] = lambda: None
    on_chunk: Callable[[int, int, int], None] = lambda done, rows, total: None
    plans: int = field(default=0, init=False)

    def note(self, plan: Plan, *, role: str, condition: int, masks: NDArray[np.int64]) -> None:
        """Writes down which rows are asked for."""
        self.journal.add_plan(
            self.run,
            self.plans,
            role=role,
            condition=condition,
            masks=masks[plan.mask_index],
            items=self.items[plan.item_index],
        )
        self.plans += 1


class JournaledExecutor:
    """Measures through a journal.

    A plan is cut into chunks at places that depend on the plan alone: a run that was killed goes on
    with the same chunks as one that was not, and so with the same batches and the same bits.

    Args:
        inner: Measures what the journal does not know.
        recording: The run.
        condition: What the inner executor's responses depend on besides mask and item.
        role: What the rows are for: `search` or `scores`.
    """

    def __init__(
        self, inner: Executor, recording: Recording, *, condition: Condition, role: str
    ) -> None:
        self._inner = inner
        self._recording = recording
        self._condition = condition
        self._role = role
        self.rows = 0
        """Rows asked so far, known ones included; a row with its gradient counts as three."""
        self.measured = 0
        """Rows measured in this process, each counted once."""

    def run(self, plan: Plan) -> Measurement:
        """Answers every row of a plan, from the journal where it can.

        Raises:
            BadResponse: A response is no finite number.
            JournalError: The journal cannot be read or written.
        """
        recording = self._recording
        journal = recording.journal
        condition = journal.condition(self._of(plan))
        mask_ids = journal.masks(plan.masks, recording.components)
        recording.note(plan, role=self._role, condition=condition, masks=mask_ids)
        responses = np.empty(len(plan))
        shape = (len(plan), plan.masks.shape[1])
        gradients = np.empty(shape, dtype=np.float32) if plan.gradients else None
        done = 0
        for rows in chunks(plan, recording.lengths, recording.chunk_tokens):
            recording.on_chunk(done, len(rows), len(plan))
            masks = mask_ids[plan.mask_index[rows]]
            items = recording.items[plan.item_index[rows]]
            there, found = journal.known(condition, masks, items)
            if not there.all():
                self._measure(plan, rows[_first_of_each(masks, items, ~there)], condition, mask_ids)
                there, found = journal.known(condition, masks, items)
                assert there.all(), "a row was measured and is not in the journal"
            responses[rows] = found
            if gradients is not None:
                gradients[rows] = journal.gradients(condition, masks, items, components=shape[1])
            done += len(rows)
            recording.checkpoint()
        self.rows += plan.cost
        return Measurement(plan, responses, gradients)

    def _of(self, plan: Plan) -> Condition:
        return Condition(**{**asdict(self._condition), "gradients": plan.gradients})

    def _measure(
        self,
        plan: Plan,
        rows: NDArray[np.intp],
        condition: int,
        mask_ids: NDArray[np.int64],
    ) -> None:
        """Measures some rows of a plan and commits them."""
        recording = self._recording
        used, mask_index = np.unique(plan.mask_index[rows], return_inverse=True)
        some = Plan(
            plan.masks[used],
            mask_index.astype(np.intp),
            plan.item_index[rows],
            gradients=plan.gradients,
        )
        with recording.measuring():
            before = recording.tokens()
            measured = self._inner.run(some)
            if not np.isfinite(measured.responses).all():
                worst = int(np.flatnonzero(~np.isfinite(measured.responses))[0])
                raise BadResponse(
                    f"the response of bank item {some.item_index[worst]} with "
                    f"{int(some.masks[some.mask_index[worst]].sum())} components ablated is "
                    f"{measured.responses[worst]}: choose another metric or --response"
                )
            masks, items = mask_ids[plan.mask_index[rows]], recording.items[plan.item_index[rows]]
            recording.journal.write(
                run=recording.run,
                role=self._role,
                condition=condition,
                masks=masks,
                items=items,
                responses=measured.responses + 0.0,  # SQLite knows no minus zero
                gradients=measured.gradients,
                outputs=self._kept(masks, items, measured),
                tokens=recording.tokens() - before,
            )
        self.measured += len(rows)

    def _kept(
        self, masks: NDArray[np.int64], items: NDArray[np.int64], measured: Measurement
    ) -> dict[int, str]:
        """The raw outputs to keep, by row."""
        if measured.outputs is None or not self._recording.keep_outputs:
            return {}
        # a fixed draw by mask and item: the same rows are kept whatever was known before
        draws = (masks.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ (
            items.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        )
        draws ^= draws >> np.uint64(32)
        draws *= np.uint64(0xD6E8FEB86659FD93)
        chosen = (draws >> np.uint64(11)) / 2.0**53 < self._recording.keep_outputs
        return {
            row: json.dumps([asdict(one) for one in measured.outputs[row]], ensure_ascii=False)
            for row in np.flatnonzero(chosen).tolist()
        }


def chunks(plan: Plan, lengths: NDArray[np.int64], tokens: int) -> Iterator[NDArray[np.intp]]:
    """Cuts a plan into runs of consecutive rows of at least `tokens` tokens, the last one less.

    Rows of one mask stay together where they fit: they share prefixes.

    Args:
        plan: The plan.
        lengths: Tokens that a row of each bank item takes.
        tokens: Where to cut.
    """
    if not len(plan):
        return
    total = np.cumsum(lengths[plan.item_index])
    begins = np.flatnonzero(np.diff(plan.mask_index, prepend=plan.mask_index[0] - 1))
    start = 0
    while start < len(plan):
        spent = total[start - 1] if start else 0
        end = int(np.searchsorted(total, spent + tokens)) + 1
        whole = begins[np.searchsorted(begins, end)] if end <= begins[-1] else len(plan)
        if total[min(whole, len(plan)) - 1] - spent <= 2 * tokens:
            end = int(whole)
        end = min(end, len(plan))
        yield np.arange(start, end, dtype=np.intp)
        start = end


def _first_of_each(
    masks: NDArray[np.int64], items: NDArray[np.int64], wanted: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Positions of the wanted rows, of equal ones only the first, in their order."""
    positions = np.flatnonzero(wanted)
    pairs = np.stack([masks[positions], items[positions]], axis=1)
    _, first = np.unique(pairs, axis=0, return_index=True)
    return positions[np.sort(first)]
