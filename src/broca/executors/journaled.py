"""Measures only rows that the journal lacks, and commits them at once."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadResponse
from broca.executors.executor import Executor
from broca.journal import Condition, Journal
from broca.measurement import Measurement, Observation, Plan
from broca.tasks import Generation, LogLikelihood, Output

T = TypeVar("T")

OUTPUTS = "outputs"
"""Role of rows whose outputs were requested."""


@dataclass(frozen=True)
class _Rows:
    """The rows of a plan in the journal: a condition, ids of masks and items."""

    condition: int
    masks: NDArray[np.int64]
    items: NDArray[np.int64]


@dataclass
class Recording:
    """A run that is written to a journal.

    Attributes:
        journal: The journal.
        run: Number of the run in the journal.
        components: Id of the components in the journal.
        items: Id of every item of the bank in the journal, `(items,)`.
        lengths: Number of tokens of a row of each item, `(items,)`.
        chunk_tokens: Number of tokens of rows that are measured and committed together.
        keep_outputs: Share of the rows whose raw output is kept, drawn by mask and item.
        measuring: Context of every measurement, which delays an interruption.
        checkpoint: Called after every commit; it may end the run by an exception.
        on_chunk: Receives before every chunk the number of done rows, of the chunk's rows, and of
            the plan's rows.
        plans: Number of recorded plans.
    """

    journal: Journal
    run: int
    components: int
    items: NDArray[np.int64]
    lengths: NDArray[np.int64]
    chunk_tokens: int
    keep_outputs: float = 0.0
    measuring: Callable[[], AbstractContextManager[Any]] = nullcontext
    checkpoint: Callable[[], None] = lambda: None
    on_chunk: Callable[[int, int, int], None] = lambda done, rows, total: None
    plans: int = field(default=0, init=False)

    def note(self, *, role: str, rows: _Rows) -> None:
        """Records the requested rows."""
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
    """Measures plans with a journal.

    A plan is divided into chunks that depend only on the plan. A killed run therefore continues
    with the same chunks as an uninterrupted run, and with the same batches and bits.

    Args:
        executor: Measures the rows that the journal lacks.
        recording: The run.
        condition: Condition of rows with response `accuracy`.
        asker: Scores outputs of rows whose scores the journal does not keep.
        margin_items: Returns the journal ids of the margins of some bank positions.
    """

    def __init__(
        self,
        executor: Executor,
        recording: Recording,
        *,
        condition: Condition,
        asker: Executor | None = None,
        margin_items: Callable[[NDArray[np.intp]], NDArray[np.int64]] | None = None,
    ) -> None:
        self._executor = executor
        self._recording = recording
        self._condition = condition
        self._asker = asker
        self._margin_items = margin_items
        self.cost: Counter[str] = Counter()
        """Number of requested rows by role, with known rows; a row with its gradient counts as
        three."""
        self.measured = 0
        """Number of distinct rows that this process measured."""

    def run(self, plan: Plan, *, role: str = "scores") -> Measurement:
        """Measures a plan, with known rows from the journal.

        Args:
            plan: The rows.
            role: Purpose of the rows: `search` or `scores`.

        Raises:
            BadResponse: A response is not a finite number.
            JournalError: The journal cannot be read or written.
        """
        rescored = self._rescored(plan)
        if rescored.any():
            return self._rescore(plan, rescored, role=role)
        rows = self._rows(plan)
        self._recording.note(role=role, rows=rows)
        self._measure_missing(plan, rows, role)
        known, responses = self._recording.journal.known(rows.condition, rows.masks, rows.items)
        assert known.all(), "a row was measured and is not in the journal"
        gradients = None
        if plan.gradients:
            gradients = self._recording.journal.gradients(
                rows.condition, rows.masks, rows.items, components=plan.masks.shape[1]
            )
        self.cost[role] += plan.cost
        return Measurement(plan, responses, gradients)

    def answers(self, plan: Plan, *, role: str = OUTPUTS) -> list[tuple[Output, ...]]:
        """Returns the model's answers in every row of a plan, with known rows from the journal."""
        plan = replace(plan, response="accuracy", gradients=False)
        rows = self._rows(plan)
        self._recording.journal.note_outputs(
            self._recording.run,
            role=role,
            condition=rows.condition,
            masks=rows.masks,
            items=rows.items,
        )
        self._answer_missing(plan, rows, role)
        texts = self._recording.journal.outputs(rows.condition, rows.masks, rows.items)
        self.cost[role] += plan.cost
        return [_from_text(text) for text in texts if text is not None]

    def observe(self, observations: Sequence[Observation]) -> list[NDArray[np.float32]]:
        """Returns the vectors of observations of one class, with known ones from the journal."""
        if not observations:
            return []
        journal, recording, condition = self._recording.journal, self._recording, self._observing
        digests = [
            _vector_digest(observation.kind, observation.key) for observation in observations
        ]
        stored = journal.vectors(condition, digests)
        first = {digest: place for place, digest in reversed(list(enumerate(digests)))}
        lengths = np.array([observation.length for observation in observations], dtype=np.int64)
        missing = [
            places
            for chunk in (part.tolist() for part in _cut(lengths, recording.chunk_tokens))
            if (places := [p for p in chunk if stored[p] is None and first[digests[p]] == p])
        ]
        batches = [[observations[place] for place in places] for places in missing]
        stream = self._executor.stream_observations(batches)
        measured: dict[bytes, NDArray[np.float32]] = {}
        for number, vectors, tokens in self._stream(stream, missing, len(observations)):
            new = [digests[place] for place in missing[number]]
            journal.write_vectors(
                run=recording.run,
                condition=condition,
                kind=observations[0].kind,
                digests=new,
                vectors=vectors,
                tokens=tokens,
            )
            measured |= dict(zip(new, vectors, strict=True))
        journal.note_vectors(recording.run, condition=condition, digests=digests)
        return [
            measured[digest] if vector is None else vector
            for digest, vector in zip(digests, stored, strict=True)
        ]

    def once(
        self, kind: str, key: str, measure: Callable[[], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """Returns a vector of numbers that this process measures, or the one in the journal.

        Args:
            kind: Kind of the vector, for the reader.
            key: What distinguishes it from others of its kind.
            measure: Measures it if the journal lacks it.
        """
        recording, digest = self._recording, _vector_digest(kind, key)
        (vector,) = recording.journal.vectors(self._observing, [digest])
        if vector is None:
            vector = measure()
            recording.journal.write_vectors(
                run=recording.run,
                condition=self._observing,
                kind=kind,
                digests=[digest],
                vectors=[vector],
                tokens=0,
            )
        recording.journal.note_vectors(recording.run, condition=self._observing, digests=[digest])
        return vector

    @cached_property
    def _observing(self) -> int:
        """The condition of vectors in the journal."""
        return self._recording.journal.condition(replace(self._condition, response="observation"))

    def _rescored(self, plan: Plan) -> NDArray[np.bool_]:
        """Returns whether each row's response is computed from outputs in the journal."""
        if self._asker is None or (plan.response or "accuracy") != "accuracy":
            return np.zeros(len(plan), dtype=bool)
        return self._asker.rescored(plan)

    def _rescore(self, plan: Plan, rescored: NDArray[np.bool_], *, role: str) -> Measurement:
        """Measures a plan with some rows that are scored from their outputs."""
        assert self._asker is not None
        responses = np.empty(len(plan))
        chosen = np.flatnonzero(rescored)
        part = _part(plan, chosen)
        responses[chosen] = self._asker.scores(part, self.answers(part, role=role))
        stored = np.flatnonzero(~rescored)
        if len(stored):
            responses[stored] = self.run(_part(plan, stored), role=role).responses
        return Measurement(plan, responses)

    def _rows(self, plan: Plan) -> _Rows:
        """Returns the rows of a plan in the journal."""
        recording = self._recording
        response = plan.response or "accuracy"
        condition = replace(self._condition, response=response, gradients=plan.gradients)
        if plan.scale is not None:
            condition = replace(condition, scale=plan.scale)
        items = recording.items[plan.item_index]
        if response != "accuracy" and self._margin_items is not None:
            items = self._margin_items(plan.item_index)
        return _Rows(
            recording.journal.condition(condition),
            recording.journal.masks(plan.masks, recording.components)[plan.mask_index],
            items,
        )

    def _measure_missing(self, plan: Plan, rows: _Rows, role: str) -> None:
        """Measures the rows that the journal lacks, and commits them chunk by chunk."""
        known, _ = self._recording.journal.known(rows.condition, rows.masks, rows.items)
        missing = self._missing(plan, rows, ~known)
        parts = [_part(plan, chunk) for chunk in missing]
        stream = self._executor.stream(parts)
        for number, measurement, tokens in self._stream(stream, missing, len(plan)):
            self._commit(parts[number], missing[number], rows, measurement, tokens, role)

    def _answer_missing(self, plan: Plan, rows: _Rows, role: str) -> None:
        """Generates the outputs that the journal lacks, and commits them chunk by chunk."""
        recording = self._recording
        texts = recording.journal.outputs(rows.condition, rows.masks, rows.items)
        absent = np.array([text is None for text in texts], dtype=bool)
        missing = self._missing(plan, rows, absent)
        stream = self._executor.stream_answers([_part(plan, chunk) for chunk in missing])
        for number, answers, tokens in self._stream(stream, missing, len(plan)):
            recording.journal.write_outputs(
                run=recording.run,
                role=role,
                condition=rows.condition,
                masks=rows.masks[missing[number]],
                items=rows.items[missing[number]],
                outputs=[_as_text(answer) for answer in answers],
                tokens=tokens,
            )

    def _missing(
        self, plan: Plan, rows: _Rows, absent: NDArray[np.bool_]
    ) -> list[NDArray[np.intp]]:
        """Returns the absent rows, chunk by chunk; of equal rows the first."""
        pairs = np.stack([rows.masks, rows.items], axis=1)
        first = np.zeros(len(plan), dtype=bool)
        first[np.unique(pairs, axis=0, return_index=True)[1]] = True
        cut = chunks(plan, self._recording.lengths, self._recording.chunk_tokens)
        parts = [chunk[absent[chunk] & first[chunk]] for chunk in cut]
        return [part for part in parts if len(part)]

    def _stream(
        self, stream: Iterator[tuple[int, T]], parts: Sequence[Sequence[int]] | Any, total: int
    ) -> Iterator[tuple[int, T, int]]:
        """Yields the parts of a stream with their tokens; the run may be interrupted between two.

        An interruption is delayed while a part is awaited and while the caller commits it.
        """
        recording = self._recording
        remaining = sum(len(part) for part in parts)
        if self._executor.concurrent:
            recording.on_chunk(total - remaining, remaining, total)
        with closing(stream) as results:  # type: ignore[type-var]
            for count in range(len(parts) + 1):
                if not self._executor.concurrent and count < len(parts):
                    recording.on_chunk(total - remaining, len(parts[count]), total)
                    remaining -= len(parts[count])
                with recording.measuring():
                    before = self._executor.runner.tokens
                    result = next(results, None)
                    if result is None:
                        return
                    number, value = result
                    yield number, value, self._executor.runner.tokens - before
                recording.checkpoint()

    def _commit(
        self,
        part: Plan,
        places: NDArray[np.intp],
        rows: _Rows,
        measurement: Measurement,
        tokens: int,
        role: str,
    ) -> None:
        """Commits the measured rows at `places` of a plan, which are the plan `part`."""
        recording = self._recording
        if not np.isfinite(measurement.responses).all():
            worst = int(np.flatnonzero(~np.isfinite(measurement.responses))[0])
            raise BadResponse(
                f"the response of bank item {part.item_index[worst]} with "
                f"{int(part.masks[part.mask_index[worst]].sum())} components ablated is "
                f"{measurement.responses[worst]}: choose another `metric` or `response`"
            )
        masks, items = rows.masks[places], rows.items[places]
        recording.journal.write(
            run=recording.run,
            role=role,
            condition=rows.condition,
            masks=masks,
            items=items,
            responses=measurement.responses + 0.0,  # SQLite has no negative zero
            gradients=measurement.gradients,
            outputs=self._kept_outputs(masks, items, measurement),
            tokens=tokens,
        )
        self.measured += len(places)

    def _kept_outputs(
        self, masks: NDArray[np.int64], items: NDArray[np.int64], measurement: Measurement
    ) -> dict[int, str]:
        """Returns the raw outputs to keep, by row."""
        if measurement.outputs is None or not self._recording.keep_outputs:
            return {}
        # drawn by mask and item: the same rows are kept regardless of known rows
        draws = (masks.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ (
            items.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
        )
        draws ^= draws >> np.uint64(32)
        draws *= np.uint64(0xD6E8FEB86659FD93)
        chosen = (draws >> np.uint64(11)) / 2.0**53 < self._recording.keep_outputs
        return {row: _as_text(measurement.outputs[row]) for row in np.flatnonzero(chosen).tolist()}


def chunks(plan: Plan, lengths: NDArray[np.int64], tokens: int) -> Iterator[NDArray[np.intp]]:
    """Divides a plan into chunks of consecutive rows of at least `tokens` tokens, except the last.

    Rows of a mask stay together if they fit, because they share prefixes.

    Args:
        plan: The plan.
        lengths: Number of tokens of a row of each bank item.
        tokens: Size of chunks in tokens.
    """
    if not len(plan):
        return
    total = np.cumsum(lengths[plan.item_index])
    begins = np.flatnonzero(np.diff(plan.mask_index, prepend=plan.mask_index[0] - 1))
    start = 0
    while start < len(plan):
        spent = total[start - 1] if start else 0
        end = int(np.searchsorted(total, spent + tokens)) + 1
        mask_end = begins[np.searchsorted(begins, end)] if end <= begins[-1] else len(plan)
        if total[min(mask_end, len(plan)) - 1] - spent <= 2 * tokens:
            end = int(mask_end)
        end = min(end, len(plan))
        yield np.arange(start, end, dtype=np.intp)
        start = end


def _cut(lengths: NDArray[np.int64], tokens: int) -> list[NDArray[np.intp]]:
    """Divides observations into chunks of approximately `tokens` tokens."""
    batch = (np.cumsum(lengths) - 1) // max(1, tokens)
    places = np.arange(len(lengths), dtype=np.intp)
    return np.split(places, np.flatnonzero(np.diff(batch)) + 1)


def _part(plan: Plan, rows: NDArray[np.intp]) -> Plan:
    """Returns some rows of a plan, with their masks."""
    used, mask_index = np.unique(plan.mask_index[rows], return_inverse=True)
    return replace(
        plan,
        masks=plan.masks[used],
        mask_index=mask_index.astype(np.intp),
        item_index=plan.item_index[rows],
    )


def _vector_digest(kind: str, key: str) -> bytes:
    return hashlib.blake2b(f"{kind}\n{key}".encode(), digest_size=16).digest()


def _as_text(answers: tuple[Output, ...]) -> str:
    """Returns answers as JSON; numbers keep every bit."""
    return json.dumps([asdict(answer) for answer in answers], ensure_ascii=True)


def _from_text(text: str) -> tuple[Output, ...]:
    return tuple(
        Generation(**fields) if "text" in fields else LogLikelihood(**fields)
        for fields in json.loads(text)
    )
