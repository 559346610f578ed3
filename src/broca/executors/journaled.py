"""Asks the journal first: what is known is not measured again, what is measured is kept at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadResponse
from broca.executors.base import Executor, StreamingExecutor
from broca.journal import Condition, Journal
from broca.measurement import Measurement, Plan
from broca.tasks import Generation, LogLikelihood, Output

T = TypeVar("T")


@dataclass(frozen=True)
class _Rows:
    """The rows of a plan as the journal knows them: one condition, ids of masks and items."""

    condition: int
    masks: NDArray[np.int64]
    items: NDArray[np.int64]


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
        on_chunk: Receives before every chunk how many rows of the plan are done, how many the chunk
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

    def note(self, *, role: str, rows: _Rows) -> None:
        """Writes down which rows are asked for."""
        self.journal.add_plan(
            self.run,
            self.plans,
            role=role,
            condition=rows.condition,
            masks=rows.masks,
            items=rows.items,
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
        margin_items: Ids of some positions of the bank as their margins ask them.
    """

    def __init__(
        self,
        inner: Executor,
        recording: Recording,
        *,
        condition: Condition,
        role: str,
        margin_items: Callable[[NDArray[np.intp]], NDArray[np.int64]] | None = None,
    ) -> None:
        self._inner = inner
        self._margin_items = margin_items
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
        journal = self._recording.journal
        rows = self._rows(plan, note=True)
        if isinstance(self._inner, StreamingExecutor):
            self._measure_ahead(self._inner, plan, rows)
        responses = np.empty(len(plan))
        shape = (len(plan), plan.masks.shape[1])
        gradients = np.empty(shape, dtype=np.float32) if plan.gradients else None
        for chunk in self._chunks(plan):
            masks, items = rows.masks[chunk], rows.items[chunk]
            there, found = journal.known(rows.condition, masks, items)
            if not there.all():
                self._measure(plan, chunk[_first_of_each(masks, items, ~there)], rows)
                there, found = journal.known(rows.condition, masks, items)
                assert there.all(), "a row was measured and is not in the journal"
            responses[chunk] = found
            if gradients is not None:
                gradients[chunk] = journal.gradients(
                    rows.condition, masks, items, components=shape[1]
                )
        self.rows += plan.cost
        return Measurement(plan, responses, gradients)

    def answers(self, plan: Plan) -> list[tuple[Output, ...]]:
        """What the model answers in every row of a plan, from the journal where it can."""
        recording = self._recording
        plan = replace(plan, response="accuracy", gradients=False)
        rows = self._rows(plan, note=False)
        if isinstance(self._inner, StreamingExecutor):
            self._answer_ahead(self._inner, plan, rows)
        texts: list[str] = []
        for chunk in self._chunks(plan):
            masks, items = rows.masks[chunk], rows.items[chunk]
            found = recording.journal.outputs(rows.condition, masks, items)
            missing = np.array([one is None for one in found], dtype=bool)
            if missing.any():
                wanted = chunk[_first_of_each(masks, items, missing)]
                with recording.measuring():
                    before = recording.tokens()
                    answers = self._inner.answers(_part(plan, wanted))
                    self._commit_outputs(wanted, rows, answers, before)
                found = recording.journal.outputs(rows.condition, masks, items)
            texts += [one for one in found if one is not None]
        self.rows += plan.cost
        return [_from_text(text) for text in texts]

    def _chunks(self, plan: Plan) -> Iterator[NDArray[np.intp]]:
        """The chunks of a plan; the run may be ended between two."""
        recording, done = self._recording, 0
        for chunk in chunks(plan, recording.lengths, recording.chunk_tokens):
            recording.on_chunk(done, len(chunk), len(plan))
            yield chunk
            done += len(chunk)
            recording.checkpoint()

    def _rows(self, plan: Plan, *, note: bool) -> _Rows:
        """What the rows of a plan are in the journal; writes down that they are asked for."""
        recording = self._recording
        response = plan.response or self._condition.response
        values = {**asdict(self._condition), "response": response, "gradients": plan.gradients}
        if plan.scale is not None:
            values["scale"] = plan.scale
        items = recording.items[plan.item_index]
        if response != "accuracy" and self._margin_items is not None:
            items = self._margin_items(plan.item_index)
        rows = _Rows(
            recording.journal.condition(Condition(**values)),
            recording.journal.masks(plan.masks, recording.components)[plan.mask_index],
            items,
        )
        if note:
            recording.note(role=self._role, rows=rows)
        return rows

    def _measure(self, plan: Plan, wanted: NDArray[np.intp], rows: _Rows) -> None:
        """Measures some rows of a plan and commits them."""
        recording = self._recording
        some = _part(plan, wanted)
        with recording.measuring():
            before = recording.tokens()
            self._commit(some, wanted, rows, self._inner.run(some), before)

    def _measure_ahead(self, inner: StreamingExecutor, plan: Plan, rows: _Rows) -> None:
        """Measures what the journal does not know, chunks side by side; commits as they come."""
        recording = self._recording

        def known(chunk: NDArray[np.intp]) -> NDArray[np.bool_]:
            return recording.journal.known(rows.condition, rows.masks[chunk], rows.items[chunk])[0]

        wanted = self._missing(plan, rows, known)
        parts = [_part(plan, one) for one in wanted]
        with closing(inner.stream(parts)) as stream:
            for number, measured, before in self._one_by_one(stream):
                self._commit(parts[number], wanted[number], rows, measured, before)

    def _answer_ahead(self, inner: StreamingExecutor, plan: Plan, rows: _Rows) -> None:
        """Asks for the outputs that the journal does not know; commits them as they come."""
        recording = self._recording

        def known(chunk: NDArray[np.intp]) -> NDArray[np.bool_]:
            found = recording.journal.outputs(rows.condition, rows.masks[chunk], rows.items[chunk])
            return np.array([one is not None for one in found], dtype=bool)

        wanted = self._missing(plan, rows, known)
        with closing(inner.stream_answers([_part(plan, one) for one in wanted])) as stream:
            for number, answers, before in self._one_by_one(stream):
                self._commit_outputs(wanted[number], rows, answers, before)

    def _missing(
        self, plan: Plan, rows: _Rows, known: Callable[[NDArray[np.intp]], NDArray[np.bool_]]
    ) -> list[NDArray[np.intp]]:
        """The rows to measure, chunk by chunk: those that a run one after another would measure."""
        first = np.zeros(len(plan), dtype=bool)
        first[_first_of_each(rows.masks, rows.items, np.ones(len(plan), dtype=bool))] = True
        cut = chunks(plan, self._recording.lengths, self._recording.chunk_tokens)
        wanted = [chunk[~known(chunk) & first[chunk]] for chunk in cut]
        missing = sum(len(one) for one in wanted)
        self._recording.on_chunk(len(plan) - missing, missing, len(plan))
        return [one for one in wanted if len(one)]

    def _one_by_one(self, stream: Iterator[tuple[int, T]]) -> Iterator[tuple[int, T, int]]:
        """What comes from a stream, with the tokens before it; the run may be ended between two.

        An interruption is put off while one is awaited and while its taker commits it.
        """
        recording = self._recording
        while True:
            with recording.measuring():
                before = recording.tokens()
                found = next(stream, None)
                if found is None:
                    return
                yield (*found, before)
            recording.checkpoint()

    def _commit(
        self,
        some: Plan,
        wanted: NDArray[np.intp],
        rows: _Rows,
        measured: Measurement,
        before: int,
    ) -> None:
        """Commits what was measured: rows `wanted` of a plan, which are the plan `some`."""
        recording = self._recording
        if not np.isfinite(measured.responses).all():
            worst = int(np.flatnonzero(~np.isfinite(measured.responses))[0])
            raise BadResponse(
                f"the response of bank item {some.item_index[worst]} with "
                f"{int(some.masks[some.mask_index[worst]].sum())} components ablated is "
                f"{measured.responses[worst]}: choose another metric or --response"
            )
        masks, items = rows.masks[wanted], rows.items[wanted]
        recording.journal.write(
            run=recording.run,
            role=self._role,
            condition=rows.condition,
            masks=masks,
            items=items,
            responses=measured.responses + 0.0,  # SQLite knows no minus zero
            gradients=measured.gradients,
            outputs=self._kept(masks, items, measured),
            tokens=recording.tokens() - before,
        )
        self.measured += len(wanted)

    def _commit_outputs(
        self,
        wanted: NDArray[np.intp],
        rows: _Rows,
        answers: list[tuple[Output, ...]],
        before: int,
    ) -> None:
        """Commits what the model answered in rows `wanted` of a plan."""
        recording = self._recording
        recording.journal.write_outputs(
            run=recording.run,
            role=self._role,
            condition=rows.condition,
            masks=rows.masks[wanted],
            items=rows.items[wanted],
            outputs=[_as_text(one) for one in answers],
            tokens=recording.tokens() - before,
        )

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
        return {row: _as_text(measured.outputs[row]) for row in np.flatnonzero(chosen).tolist()}


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


def _part(plan: Plan, rows: NDArray[np.intp]) -> Plan:
    """Some rows of a plan, with the masks that they need."""
    used, mask_index = np.unique(plan.mask_index[rows], return_inverse=True)
    return replace(
        plan,
        masks=plan.masks[used],
        mask_index=mask_index.astype(np.intp),
        item_index=plan.item_index[rows],
    )


def _as_text(answers: tuple[Output, ...]) -> str:
    """Answers as JSON; numbers keep every bit."""
    return json.dumps([asdict(one) for one in answers], ensure_ascii=True)


def _from_text(text: str) -> tuple[Output, ...]:
    return tuple(
        Generation(**one) if "text" in one else LogLikelihood(**one) for one in json.loads(text)
    )
