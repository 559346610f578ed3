"""Measures only rows that the journal lacks, and commits them at once."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.engine import Answers, Job
from broca.errors import BadLogits, BadResponse
from broca.executors.executor import Executor
from broca.measurement import GRADIENT_ROW, Bools, Ints, Measurement, Observation, Plan
from broca.store import Condition, Journal, row_keys, vector_keys
from broca.store.records import Ids
from broca.tasks import Generation, LogLikelihood, Output

OUTPUTS = "outputs"
"""Role of rows whose outputs were requested."""

_Rows = Ints
"""Positions of some rows of a plan."""


@dataclass(kw_only=True)
class JournaledExecutor:
    """Measures the plans of a run with a journal.

    A plan is divided into chunks that depend only on the plan. A killed run therefore continues
    with the same chunks as an uninterrupted run, and with the same batches and bits.

    Attributes:
        executor: Measures the rows that the journal lacks.
        journal: The journal.
        number: Number of the run in the journal.
        condition: Condition of rows with response `accuracy`.
        components: Id of the components in the journal.
        items: Id of every item of the bank in the journal, `(items,)`.
        lengths: Number of tokens of a row of each item, `(items,)`.
        chunk_tokens: Number of tokens of rows that are measured and committed together.
        keep_outputs: Share of the rows whose raw output is kept, drawn by mask and item.
        margin_items: Returns the journal ids of the margins of some bank positions.
        measuring: Context of every measurement, which delays an interruption.
        checkpoint: Called after every commit; it may end the run by an exception.
        on_chunk: Receives before every chunk the number of done rows, of the chunk's rows, and of
            the plan's rows.
        cost: Number of requested rows by role, with known rows; a row with its gradient counts as
            three.
    """

    executor: Executor
    journal: Journal
    number: int
    condition: Condition
    components: int
    items: Ids
    lengths: Ids
    chunk_tokens: int
    keep_outputs: float = 0.0
    margin_items: Callable[[_Rows], Ids] | None = None
    measuring: Callable[[], AbstractContextManager[Any]] = nullcontext
    checkpoint: Callable[[], None] = lambda: None
    on_chunk: Callable[[int, int, int], None] = lambda done, rows, total: None
    cost: Counter[str] = field(default_factory=Counter, init=False)
    _requested: dict[tuple[str, str, int], list[Ids]] = field(
        default_factory=lambda: defaultdict(list), init=False
    )
    """Requested keys by role, kind and condition."""

    def run(self, plan: Plan, *, role: str = "scores") -> Measurement:
        """Measures a plan, with known rows from the journal.

        Args:
            plan: The rows.
            role: Purpose of the rows: `search` or `scores`.

        Raises:
            BadResponse: A response or a gradient is not finite.
            JournalError: The journal cannot be read or written.
        """
        if (plan.response or "accuracy") == "accuracy":
            rescored = self.executor.rescored(plan)
            if rescored.any():
                return self._rescore(plan, rescored, role=role)
        with self.journal.transaction():
            condition, keys = self._rows(plan, role, "gradients" if plan.gradients else "rows")
            self.journal.add_plan(self.number, role=role, condition=condition, keys=keys)
        known = self.journal.find("rows", condition, keys)
        responses = known["response"].copy()
        gradients = None
        if plan.gradients:
            gradients = np.zeros((len(plan), plan.masks.shape[1]), dtype=np.float32)
            for row, blob in enumerate(self.journal.contents(known)):
                if blob is not None:
                    gradients[row] = np.frombuffer(blob, dtype="<f4")
        cut = chunks(plan, self.lengths, self.chunk_tokens)
        for rows, answers in self._answered(cut, keys, known["batch"] == 0, plan):
            measurement = self.executor.measurement(plan.part(rows), answers)
            self._commit(condition, keys[rows], measurement, tokens=answers.tokens, role=role)
            responses[rows] = measurement.responses + 0.0  # no negative zero
            if gradients is not None:
                gradients[rows] = measurement.slopes()
        first = _first(keys)
        return Measurement(plan, responses[first], None if gradients is None else gradients[first])

    def answers(self, plan: Plan, *, role: str = OUTPUTS) -> list[tuple[Output, ...]]:
        """Returns the model's answers in every row of a plan, with known rows from the journal."""
        plan = replace(plan, response="accuracy", gradients=False)
        with self.journal.transaction():
            condition, keys = self._rows(plan, role, "outputs")
        cut = chunks(plan, self.lengths, self.chunk_tokens)
        texts = self._contents("outputs", condition, keys, cut, plan, role=role)

        def output(fields: dict[str, Any]) -> Output:
            return Generation(**fields) if "text" in fields else LogLikelihood(**fields)

        return [tuple(map(output, json.loads(text))) for text in texts]

    def observe(self, observations: Sequence[Observation]) -> list[NDArray[np.float32]]:
        """Returns the vectors of observations of one class, with known ones from the journal."""
        if not observations:
            return []
        kind = observations[0].kind
        keys = vector_keys(kind, [observation.key for observation in observations])
        tokens = np.cumsum([observation.length for observation in observations])
        ends = np.flatnonzero(np.diff((tokens - 1) // max(1, self.chunk_tokens))) + 1
        cut = np.split(np.arange(len(keys), dtype=np.intp), ends)
        condition = self._vector_condition()
        vectors = self._contents("vectors", condition, keys, cut, observations, role=kind)
        return [_vector(vector) for vector in vectors]

    def once(
        self, kind: str, key: str, measure: Callable[[], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """Returns a vector of numbers that this process measures, or the one in the journal.

        Args:
            kind: Kind of the vector, for the reader.
            key: What distinguishes it from others of its kind.
            measure: Measures it if the journal lacks it.
        """
        condition, keys = self._vector_condition(), vector_keys(kind, [key])
        (vector,) = self.journal.contents(self.journal.find("vectors", condition, keys))
        if vector is None:
            vector = measure().astype("<f4").tobytes()
            self.journal.write(
                run=self.number, role=kind, kind="vectors", condition=condition, keys=keys,
                contents=[vector],
            )  # fmt: skip
        return _vector(vector)

    def requested(self, role: str) -> int:
        """Returns the number of distinct rows that this run requested, measured or known.

        A row with its gradient counts as three, and a row whose output was requested counts once
        more. Vectors are not rows.
        """
        return sum(
            len(np.unique(np.concatenate(keys))) * (GRADIENT_ROW if kind == "gradients" else 1)
            for (of, kind, _), keys in self._requested.items()
            if of == role
        )

    def _rescore(self, plan: Plan, rescored: Bools, *, role: str) -> Measurement:
        """Measures a plan with some rows that are scored from their outputs."""
        responses = np.empty(len(plan))
        chosen, stored = np.flatnonzero(rescored), np.flatnonzero(~rescored)
        part = plan.part(chosen)
        responses[chosen] = self.executor.scores(part, self.answers(part, role=role))
        if len(stored):
            responses[stored] = self.run(plan.part(stored), role=role).responses
        return Measurement(plan, responses)

    def _rows(self, plan: Plan, role: str, kind: str) -> tuple[int, Ids]:
        """Counts a plan; returns the id of its condition and the keys of its rows."""
        response = plan.response or "accuracy"
        scale = self.condition.scale if plan.scale is None else plan.scale
        condition = self.journal.condition(
            replace(self.condition, response=response, gradients=plan.gradients, scale=scale)
        )
        items = self.items[plan.item_index]
        if response != "accuracy" and self.margin_items is not None:
            items = self.margin_items(plan.item_index)
        masks = self.journal.masks(plan.masks, self.components)
        keys = row_keys(masks[plan.mask_index], items)
        self.cost[role] += plan.cost
        self._requested[role, kind, condition].append(keys)
        return condition, keys

    def _vector_condition(self) -> int:
        return self.journal.condition(replace(self.condition, response="observation"))

    def _contents(
        self,
        kind: str,
        condition: int,
        keys: Ids,
        cut: Iterable[_Rows],
        work: Plan | Sequence[Observation],
        *,
        role: str,
    ) -> list[bytes]:
        """Returns outputs or vectors; those that the journal lacks are measured and written."""
        contents = self.journal.contents(self.journal.find(kind, condition, keys))
        absent = np.array([content is None for content in contents], dtype=bool)
        for rows, answers in self._answered(cut, keys, absent, work):
            new = [_as_text(outputs) for outputs in answers.outputs]
            new += [vector.astype("<f4").tobytes() for vector in answers.vectors]
            self.journal.write(
                run=self.number, role=role, kind=kind, condition=condition, keys=keys[rows],
                contents=new, tokens=answers.tokens,
            )  # fmt: skip
            for row, content in zip(rows.tolist(), new, strict=True):
                contents[row] = content
        return [contents[row] or b"" for row in _first(keys).tolist()]

    def _answered(
        self, cut: Iterable[_Rows], keys: Ids, absent: Bools, work: Plan | Sequence[Observation]
    ) -> Iterator[tuple[_Rows, Answers]]:
        """Yields the absent rows, of equal rows the first, chunk by chunk with their answers.

        The run may be interrupted between two chunks: an interruption is delayed while a chunk is
        awaited and while the caller commits it.

        Raises:
            BadLogits: The model returned NaN or infinite logits; the message names the item.
        """
        chosen = absent & (_first(keys) == np.arange(len(keys)))
        parts = [rows for chunk in cut if len(rows := chunk[chosen[chunk]])]
        jobs = (self._job(number, work, rows) for number, rows in enumerate(parts))
        runner, total, remaining = self.executor.runner, len(keys), int(chosen.sum())
        stream = iter(runner.stream(jobs, rows=remaining))
        if runner.concurrent:
            self.on_chunk(total - remaining, remaining, total)
        for count in range(len(parts) + 1):
            if not runner.concurrent and count < len(parts):
                self.on_chunk(total - remaining, len(parts[count]), total)
                remaining -= len(parts[count])
            with self.measuring():
                try:
                    answers = next(stream, None)
                except BadLogits as error:
                    if not isinstance(work, Plan):
                        raise
                    where = self.executor.place_of(parts[error.job][error.row], work)
                    raise BadLogits(f"{where}: {error}", row=error.row) from error
                if answers is None:
                    return
                yield parts[answers.number], answers
            self.checkpoint()

    def _job(self, number: int, work: Plan | Sequence[Observation], rows: _Rows) -> Job:
        if isinstance(work, Plan):
            return self.executor.job(number, work.part(rows))
        none, gates = np.zeros(0, dtype=np.intp), np.zeros((0, 0), dtype=np.float32)
        observations = tuple(work[row] for row in rows.tolist())
        return Job(number, gates, none, none, observations=observations)

    def _commit(
        self, condition: int, keys: Ids, measurement: Measurement, *, tokens: int, role: str
    ) -> None:
        """Writes measured rows, and the outputs that are kept, in one transaction."""
        plan, responses = measurement.plan, measurement.responses
        slopes = measurement.slopes().astype("<f4") if plan.gradients else ()
        for values, name, other in (
            (responses, "response", "another `metric` or `response`"),
            (np.sum(slopes, axis=-1), "gradient", "a method without gradients, or another `dtype`"),
        ):
            for row in np.flatnonzero(~np.isfinite(values))[:1]:
                raise BadResponse(
                    f"the {name} of {self.executor.place_of(row, plan)} is {values[row]}: "
                    f"choose {other}"
                )
        batch: dict[str, Any] = {"run": self.number, "role": role, "condition": condition}
        with self.journal.transaction():
            self.journal.write(
                **batch, keys=keys, responses=responses + 0.0,
                contents=[slope.tobytes() for slope in slopes], tokens=tokens,
            )  # fmt: skip
            if measurement.outputs is not None and self.keep_outputs:
                kept = _drawn(keys, self.keep_outputs)
                texts = [_as_text(measurement.outputs[row]) for row in kept.tolist()]
                if texts:
                    self.journal.write(**batch, kind="outputs", keys=keys[kept], contents=texts)


def chunks(plan: Plan, lengths: Ids, tokens: int) -> Iterator[_Rows]:
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
        if total[mask_end - 1] - spent <= 2 * tokens:
            end = int(mask_end)
        yield np.arange(start, end, dtype=np.intp)
        start = end


def _first(keys: Ids) -> _Rows:
    """Returns the position of the first equal key for every key, `(rows,)`."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first[inverse]


def _drawn(keys: Ids, share: float) -> _Rows:
    """Draws a share of rows by mask and item: the same rows regardless of known rows."""
    draws = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    draws ^= draws >> np.uint64(32)
    draws *= np.uint64(0xD6E8FEB86659FD93)
    return np.flatnonzero((draws >> np.uint64(11)) / 2.0**53 < share)


def _vector(blob: bytes) -> NDArray[np.float32]:
    return np.frombuffer(blob, dtype="<f4").astype(np.float32)


def _as_text(answers: tuple[Output, ...]) -> bytes:
    """Returns answers as JSON; numbers keep every bit."""
    return json.dumps([asdict(answer) for answer in answers]).encode()
