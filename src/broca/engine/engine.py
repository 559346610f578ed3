"""The engine: answers jobs, whose rows each have a mask of their own.

It depends on requests and gates only, not on tasks' metrics or searches.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from threading import Lock
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from broca.engine.batches import Donors, Lane, Work, work_of
from broca.engine.decoder import Decoder
from broca.engine.reader import Reader, Store, differentiate
from broca.engine.stop_rule import StopRule, eos_tokens
from broca.errors import BadLogits
from broca.measurement import Observation
from broca.models import GatedModel
from broca.options import EngineOptions, ModelOptions
from broca.tasks.items import Margin, Output, Request

SMALL = 20_000_000
"""Maximum number of parameters of a model that gets lanes by default; measured at 1.2 million."""

_WORTH = 64
"""Number of sequences below which one lane runs all of them."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    Attributes:
        done: Number of answered requests.
        total: Number of requests.
        tokens: Number of tokens that the model has read or generated, padding excluded.
        seconds_left: Expected time of the remaining requests; None if it is unknown.
    """

    done: int
    total: int
    tokens: int
    seconds_left: float | None = None


@dataclass(frozen=True, eq=False)
class Job:
    """Rows or observations for an engine: plain data, which can be sent to another process.

    Attributes:
        number: Number of the job, for its answers and errors.
        gates: Gates of every mask, `(masks, components)`.
        gate_index: Row of `gates` for every row, `(rows,)`.
        donor_index: Row of the donors for every row, `(rows,)`.
        requests: The requests of every row.
        margins: The margin of every row, to differentiate it instead.
        observations: Observations of one class, instead of rows.
    """

    number: int
    gates: NDArray[np.float32]
    gate_index: NDArray[np.intp]
    donor_index: NDArray[np.intp]
    requests: tuple[tuple[Request, ...], ...] = ()
    margins: tuple[Margin, ...] = ()
    observations: tuple[Observation, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows or observations."""
        return len(self.observations or self.gate_index)


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of an engine to a job.

    Attributes:
        number: Number of the job.
        tokens: Number of tokens that were read or generated, padding excluded.
        outputs: Answers to the requests of every row.
        values: Margins, `(rows,)`.
        gradients: Their gradients with respect to the gates, `(rows, components)`.
        vectors: Vectors of the observations.
    """

    number: int
    tokens: int = 0
    outputs: tuple[tuple[Output, ...], ...] = ()
    values: NDArray[np.float64] | None = None
    gradients: NDArray[np.float32] | None = None
    vectors: tuple[NDArray[np.float32], ...] = ()


class Engine:
    """Answers jobs with a gated model.

    Args:
        model: The model.
        options: Which work is shared, and the size of batches.
        donors: Activations that replace ablated ones, as from `donor_activations`; zeros if None.
        on_progress: Called after every batch.

    Attributes:
        donors: Activations that replace ablated ones.
        device: The kind of device that the model runs on.
        observed_tokens: Number of tokens that observations have read, which they count themselves.
    """

    concurrent = False

    def __init__(
        self,
        model: GatedModel,
        options: EngineOptions | None = None,
        *,
        donors: Donors | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        options = options or EngineOptions()
        self.model, self.donors, self.device = model, donors or {}, model.device.type
        self._on_progress = on_progress
        stop = StopRule(model.tokenizer, eos_tokens(model))
        self._lanes = [Lane(model, options, stop, self.donors)]
        # small matrices do not divide well among threads (experiments/LOG.md)
        weights = list(model.model.parameters())
        small = sum(weight.numel() for weight in weights) <= SMALL
        on_cpu = all(weight.device.type == "cpu" for weight in weights)
        self._most_lanes = options.lanes or (torch.get_num_threads() if small and on_cpu else 1)
        self.observed_tokens = 0

    @property
    def tokens(self) -> int:
        """Number of tokens that the model has read or generated so far, padding excluded."""
        return sum(lane.tokens for lane in self._lanes) + self.observed_tokens

    @property
    def token_budget(self) -> int:
        """Most tokens of a batch at present."""
        return min(lane.budget.tokens for lane in self._lanes)

    def stream(self, jobs: Iterable[Job], *, rows: int) -> Iterator[Answers]:
        """Returns the answers to jobs of `rows` rows in all, one after another; see `answer`."""
        return map(self.answer, jobs)

    def answer(self, job: Job) -> Answers:
        """Answers a job.

        Returns:
            The answers, row by row, independent of the batch size.

        Raises:
            BadLogits: The model returned NaN or infinite logits.
            BadInput: The model has no embedding for a token.
        """
        margins = (margin.requests for margin in job.margins)
        asked = {id(request): request for row in (*job.requests, *margins) for request in row}
        for request in asked.values():
            self.model.require_embedded((*request.context, *request.continuation))
        masks = torch.from_numpy(np.ascontiguousarray(job.gates, dtype=np.float32))
        row_of = [row for row, requests in enumerate(job.requests) for _ in requests]
        outputs: list[Output | None] = [None] * len(row_of)
        indices = job.gate_index.tolist(), job.donor_index.tolist()
        start, done, one_at_a_time = self.tokens, 0, Lock()

        def store(results: Sequence[tuple[int, Output]]) -> None:
            nonlocal done
            with one_at_a_time:
                for position, output in results:
                    assert outputs[position] is None, "a request was answered twice"
                    outputs[position] = output
                done += len(results)
                if self._on_progress is not None:
                    self._on_progress(Progress(done, len(outputs), self.tokens - start))

        try:
            with self.model.in_use():
                if job.observations:
                    vectors = type(job.observations[0]).observe(self, job.observations)
                    return Answers(job.number, self.tokens - start, vectors=tuple(vectors))
                if job.margins:
                    rows = list(zip(job.margins, *indices, strict=True))
                    answer = differentiate(self._lanes[0], masks, rows)
                    return Answers(job.number, self.tokens - start, (), *answer)
                readings, decodings = work_of(job.requests, *indices)
                lengths = [work.length for work in (*readings, *decodings)]
                self.model.sharing(max(lengths, default=1))  # proved here, not in a lane
                if self._most_lanes > 1 and len(lengths) >= _WORTH:
                    self._run_in_lanes(masks, store, readings, decodings)
                else:
                    Reader(self._lanes[0], masks, store).run(readings)
                    Decoder(self._lanes[0], masks, store).run(decodings)
        except BadLogits as error:
            error.job, error.row = job.number, row_of[error.row] if row_of else error.row
            raise
        answered = iter(cast("list[Output]", outputs))
        rows_of_outputs = (tuple(islice(answered, len(requests))) for requests in job.requests)
        return Answers(job.number, self.tokens - start, tuple(rows_of_outputs))

    def _run_in_lanes(
        self, masks: Tensor, store: Store, readings: Sequence[Work], decodings: Sequence[Work]
    ) -> None:
        """Divides work among copies of the model, each with a thread, its own hooks and batches.

        Rows that may share lower layers, else those that may share prefixes, stay together.
        """
        number, threads = self._most_lanes, torch.get_num_threads()
        while len(self._lanes) < number:
            self._lanes.append(self._lanes[0].copy())
        by_mask = attrgetter("mask", "donor", "tokens")
        by_tokens = attrgetter("tokens", "mask", "donor")
        by_sequence = Reader(self._lanes[0], masks, store).saves_layers(readings)
        read = _shares(sorted(readings, key=by_tokens if by_sequence else by_mask), number)
        decoded = _shares(sorted(decodings, key=by_mask), number)

        def run(lane: Lane, readings: Sequence[Work], decodings: Sequence[Work]) -> None:
            Reader(lane, masks, store).run(readings)
            Decoder(lane, masks, store).run(decodings)

        try:
            with ThreadPoolExecutor(number, "lane", torch.set_num_threads, (1,)) as pool:
                list(pool.map(run, self._lanes, read, decoded))  # raises what a lane raised
        finally:
            torch.set_num_threads(threads)  # a library may keep a single number for all threads

    def run(
        self,
        requests: Sequence[Request],
        gates: NDArray[np.float32],
        gate_index: NDArray[np.intp],
        donor_index: NDArray[np.intp] | None = None,
    ) -> list[Output]:
        """Answers requests, each in a row of its own; see `answer`.

        Args:
            requests: The requests.
            gates: Gates of every mask, `(masks, components)`.
            gate_index: Row of every request in `gates`, `(requests,)`.
            donor_index: Row of every request in the donors, `(requests,)`; the first if None.
        """
        donors = np.zeros(len(requests), dtype=np.intp) if donor_index is None else donor_index
        rows = tuple((request,) for request in requests)
        answers = self.answer(Job(0, gates, gate_index, donors, rows))
        return [output for (output,) in answers.outputs]


@dataclass(frozen=True, kw_only=True, eq=False)
class RunnerSpec:
    """What a runner is made of.

    Attributes:
        model: The model of this process.
        key: Equal keys mean equal donors.
        donors: Replacements of ablated activations, in the order of the model's gate points.
        engine_options: Options of the engine.
        model_options: How other processes load the model.
        on_progress: Called after every batch.
    """

    model: GatedModel
    key: str = ""
    donors: tuple[Tensor, ...] = field(default=(), repr=False)
    engine_options: EngineOptions = field(default_factory=EngineOptions)
    model_options: ModelOptions = field(default_factory=ModelOptions)
    on_progress: Callable[[Progress], None] = lambda progress: None

    def engine(self) -> Engine:
        """Makes an engine of this process."""
        points = self.model.points if self.donors else ()
        donors = dict(zip(points, self.donors, strict=True))
        return Engine(self.model, self.engine_options, donors=donors, on_progress=self.on_progress)


def _shares(work: Sequence[Work], number: int) -> list[list[Work]]:
    """Divides work into `number` parts of approximately equal length."""
    total = sum(row.length for row in work)
    shares: list[list[Work]] = [[] for _ in range(number)]
    before = 0
    for row in work:
        shares[min(number - 1, before * number // max(1, total))].append(row)
        before += row.length
    return shares
