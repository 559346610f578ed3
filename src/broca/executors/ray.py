"""Runs plans on the workers of a Ray cluster, each with a model of its own.

Workers are given one batch of rows at a time, the next as soon as they are done, so that a slow one
holds nobody up. The driver alone makes questions, scores answers and writes the journal. A batch
whose worker dies or hangs goes to another worker, and another worker is started in its place.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from broca.engine import Progress
from broca.errors import BadInput, BadLogits, BrocaError, ExecutorFailed, MissingExtra
from broca.executors.asking import Answers, Asker, Questions
from broca.executors.workers import Loaded, Refusal, Worker, WorkerSpec
from broca.measurement import Measurement, Plan
from broca.tasks import Output, Request

_LOOK_S = 1.0
"""Seconds between two looks at the clock while nothing comes."""


@dataclass(frozen=True)
class RayOptions:
    """Where workers run, and what is put up with.

    Attributes:
        address: A running cluster, such as `auto`; None starts one on this machine for the run.
        workers: How many; as many as the cluster has room for if None.
        gpus_per_worker: GPUs of each; more than one spreads the model over them. None for one if
            the cluster has GPUs, else none.
        attempts: How often a batch may be given out, and how often in a row a worker may fail to
            start.
        batch_limit_s: Seconds after which a worker counts as hung.
        start_limit_s: Seconds in which a worker has to load the model.

    Raises:
        BadInput: A number that cannot be.
    """

    address: str | None = None
    workers: int | None = None
    gpus_per_worker: float | None = None
    attempts: int = 3
    batch_limit_s: float = 1800.0
    start_limit_s: float = 3600.0

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise BadInput(f"--workers must be at least 1, not {self.workers}")
        gpus = self.gpus_per_worker
        if gpus is not None and not (0 <= gpus < 1 or gpus == int(gpus)):
            raise BadInput(f"--gpus-per-worker must be a whole number or less than 1, not {gpus:g}")
        if not (self.attempts >= 1 and self.batch_limit_s > 0 and self.start_limit_s > 0):
            raise BadInput("attempts and limits of the Ray executor must be positive")


@dataclass
class _Job:
    """A batch of rows on its way."""

    stream: object
    number: int
    questions: Questions
    attempts: int = 0


@dataclass
class _Member:
    """A worker: its actor, what it said of itself, and until when it has to answer."""

    actor: Any
    deadline: float
    loaded: Loaded | None = None
    job: _Job | None = None


@dataclass
class RayPool:
    """Workers of a Ray cluster; leaving the context ends them.

    Args:
        spec: What they load.
        options: Where they run.
        on_progress: Called after every batch.
    """

    spec: WorkerSpec
    options: RayOptions = field(default_factory=RayOptions)
    on_progress: Callable[[Progress], None] = lambda progress: None
    tokens: int = field(default=0, init=False)
    """Tokens that workers have read or written, in the batches that were handed over."""

    def __post_init__(self) -> None:
        self._ray = require_ray()
        self._busy: dict[Any, _Member] = {}
        self._idle: list[_Member] = []
        self._failed_starts = 0
        self._reason = ""
        self._started_ray = False
        self._gpus = 0.0

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all workers, and Ray if this pool started it."""
        for member in [*self._busy.values(), *self._idle]:
            self._end(member)
        self._busy, self._idle = {}, []
        if self._started_ray:
            self._ray.shutdown()
            self._started_ray = False

    @property
    def workers(self) -> list[Loaded]:
        """The workers that can answer at present."""
        members = [*self._busy.values(), *self._idle]
        return [one.loaded for one in members if one.loaded is not None]

    @property
    def token_budget(self) -> int:
        """Most tokens of a batch, as the first worker found it."""
        return self._first.token_budget

    @property
    def device(self) -> str:
        """The kind of device that workers run on."""
        return self._first.device

    def run(
        self,
        requests: Sequence[Request],
        gates: NDArray[np.float32],
        gate_index: NDArray[np.intp],
        donor_index: NDArray[np.intp] | None = None,
    ) -> list[Output]:
        """Answers every request under its gates, as an engine does.

        Raises:
            BadLogits: The model returned NaN or infinite logits.
            ExecutorFailed: Workers died or hung too often.
        """
        if donor_index is None:
            donor_index = np.zeros(len(requests), dtype=np.intp)
        parts = list(_cut([one.length for one in requests], self.token_budget))
        jobs = (
            Questions(
                gates,
                gate_index[part],
                donor_index[part],
                np.arange(len(part), dtype=np.intp),
                len(part),
                tuple(requests[one] for one in part.tolist()),
            )
            for part in parts
        )
        found: list[tuple[Output, ...]] = [() for _ in parts]
        with closing(self.stream(jobs, rows=len(requests))) as stream:
            for number, answers in stream:
                if isinstance(answers, BrocaError):
                    raise answers
                found[number] = answers.outputs
        return [output for outputs in found for output in outputs]

    def stream(
        self, jobs: Iterable[Questions], *, rows: int
    ) -> Generator[tuple[int, Answers | BrocaError], None, None]:
        """Gives batches out and yields the number of each with its answers, as they come.

        Args:
            jobs: The batches; each is made when a worker is free for it.
            rows: Rows of all of them.

        Raises:
            ExecutorFailed: A batch was lost too often, or no worker is left.
        """
        me, numbered, again = object(), enumerate(jobs), deque[_Job]()
        done, start, more = 0, self.tokens, True
        failure: ExecutorFailed | None = None

        def give_out() -> None:
            nonlocal more
            while self._idle and (again or more) and failure is None:
                job = again.popleft() if again else _next(me, numbered)
                if job is None:
                    more = False
                else:
                    self._give(job)

        while True:
            give_out()
            mine = any(one.job is not None and one.job.stream is me for one in self._busy.values())
            if failure is not None and not mine:
                raise failure
            if not (more or again or mine):
                return
            for job, answers in self._wait():
                if job.stream is not me:
                    continue  # of a stream that was given up
                if answers is None:
                    again.append(job)
                    if job.attempts >= self.options.attempts:
                        failure = self._lost_too_often(job)  # once the others' batches are in
                    continue
                done += job.questions.rows
                self.tokens += answers[1]
                self.on_progress(Progress(done, rows, self.tokens - start))
                found = answers[0]
                give_out()  # the caller may take its time with these answers
                yield job.number, found.error() if isinstance(found, Refusal) else found

    def _open(self) -> None:
        """Joins or starts a cluster, and waits for the first worker."""
        ray, options = self._ray, self.options
        if not ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
            quiet = {"include_dashboard": False} if options.address is None else {}
            try:
                ray.init(
                    address=options.address or "local",
                    log_to_driver=False,
                    logging_level="ERROR",
                    **quiet,
                )
            except Exception as error:  # Ray raises bare ones too
                ray.shutdown()  # what of it had started
                if options.address is None:
                    raise ExecutorFailed(f"Ray does not start here: {_line(error)}") from error
                raise BadInput(
                    f"no Ray cluster at '{options.address}': {_line(error)}; start one with `ray "
                    "start --head`, or leave --address out"
                ) from error
            self._started_ray = True
        count, self._gpus, self.spec = _plan(ray.cluster_resources(), options, self.spec)
        for _ in range(count):
            self._start()
        while not self._idle:
            for _ in self._wait():
                pass
        (self._first,) = (one.loaded for one in self._idle[:1] if one.loaded is not None)

    def _start(self) -> None:
        """Starts a worker; it is asked to load the model."""
        remote = self._ray.remote(Worker)
        actor = remote.options(
            num_cpus=1, num_gpus=self._gpus, max_restarts=0, scheduling_strategy="SPREAD"
        ).remote(self.spec)
        member = _Member(actor, time.monotonic() + self.options.start_limit_s)
        self._busy[actor.load.remote()] = member

    def _give(self, job: _Job) -> None:
        """Gives a batch to a worker that has none."""
        member = self._idle.pop()
        job.attempts += 1
        member.job = job
        member.deadline = time.monotonic() + self.options.batch_limit_s
        self._busy[member.actor.answer.remote(job.questions)] = member

    def _wait(self) -> Iterator[tuple[_Job, tuple[Answers | Refusal, int] | None]]:
        """Waits until something happens; yields batches with their answers, or None if lost."""
        if not self._busy:
            raise ExecutorFailed(
                f"no worker is left ({self._reason}); everything that was measured is kept: look "
                "at the workers' machines, then give the same command again"
            )
        ready, _ = self._ray.wait(list(self._busy), num_returns=1, timeout=_LOOK_S)
        now = time.monotonic()
        late = [ref for ref, one in self._busy.items() if one.deadline < now and ref not in ready]
        for ref in (*ready, *late):
            member = self._busy.pop(ref)
            job, member.job = member.job, None
            try:
                found = self._found(ref, member, late=ref in late)
            except _Lost as error:
                self._reason = str(error)
                self._end(member)
                self._replace(starting=job is None)
                if job is not None:
                    yield job, None
                continue
            self._idle.append(member)
            if job is None:
                self._welcome(member, found)
            else:
                yield job, found

    def _found(self, ref: Any, member: _Member, *, late: bool) -> Any:
        """What a worker returned.

        Raises:
            _Lost: It died, hung, or failed in a way that broca does not know.
        """
        if late:
            where = "" if member.loaded is None else f" on {member.loaded.node}"
            raise _Lost(f"a worker{where} did not answer within its limit")
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            raise _Lost(f"a worker failed with {_line(error.cause)}") from error
        except self._ray.exceptions.RayError as error:
            where = "" if member.loaded is None else f" on {member.loaded.node}"
            raise _Lost(f"a worker{where} died ({type(error).__name__})") from error

    def _welcome(self, member: _Member, found: Loaded | Refusal) -> None:
        """Takes in a worker that has loaded the model.

        Raises:
            ExecutorFailed: It could not, or loaded another one.
        """
        if isinstance(found, Refusal):
            raise ExecutorFailed(f"a worker cannot load the model: {found.message}")
        if found.fingerprint != self.spec.fingerprint:
            raise ExecutorFailed(
                f"a worker on {found.node} loaded other weights of '{self.spec.model}' than this "
                f"process (digest {found.fingerprint[:12]}, here {self.spec.fingerprint[:12]}): "
                "give every machine the same files"
            )
        member.loaded = found
        self._failed_starts = 0

    def _replace(self, *, starting: bool) -> None:
        """Starts a worker in the place of a lost one, unless workers cannot be started."""
        if starting:
            self._failed_starts += 1
        if self._failed_starts < self.options.attempts:
            self._start()

    def _lost_too_often(self, job: _Job) -> ExecutorFailed:
        return ExecutorFailed(
            f"a batch of {job.questions.rows} rows was lost {job.attempts} times, the last time "
            f"because {self._reason}; everything else that was measured is kept: look at the "
            "workers' machines, then give the same command again"
        )

    def _end(self, member: _Member) -> None:
        if self._ray.is_initialized():
            self._ray.kill(member.actor, no_restart=True)


class _Lost(Exception):
    """A worker is of no more use; the message says why."""


class RayExecutor:
    """Measures the rows of plans on the workers of a pool.

    Args:
        pool: The workers.
        asker: Turns plans into questions, and answers into responses.
    """

    def __init__(self, pool: RayPool, asker: Asker) -> None:
        self._pool = pool
        self._asker = asker

    def run(self, plan: Plan) -> Measurement:
        """Measures every row of a plan, in its order.

        Raises:
            TaskUnusable: Margins are wanted, and an item has no answer to compare with.
            BadLogits: The model returned NaN or infinite logits.
            ExecutorFailed: Workers died or hung too often.
        """
        parts = self._parts(plan)
        found: dict[int, Measurement] = dict(self.stream([_rows(plan, one) for one in parts]))
        several = [found[number] for number in range(len(parts))]
        gradients = [one.gradients for one in several if one.gradients is not None]
        outputs = [one.outputs for one in several if one.outputs is not None]
        return Measurement(
            plan,
            np.concatenate([np.zeros(0), *(one.responses for one in several)]),
            np.concatenate(gradients) if gradients else None,
            tuple(output for one in outputs for output in one) if outputs else None,
        )

    def answers(self, plan: Plan) -> list[tuple[Output, ...]]:
        """What the model answers in every row of a plan, to its item's own requests."""
        parts = self._parts(plan)
        found = dict(self.stream_answers([_rows(plan, one) for one in parts]))
        return [row for number in range(len(parts)) for row in found[number]]

    def stream(self, plans: Sequence[Plan]) -> Generator[tuple[int, Measurement], None, None]:
        """The position of every plan with its measurement, as they come."""
        for number, questions, answers in self._answered(plans, own=False):
            yield number, self._asker.measurement(plans[number], questions, answers)

    def stream_answers(
        self, plans: Sequence[Plan]
    ) -> Generator[tuple[int, list[tuple[Output, ...]]], None, None]:
        """The position of every plan with its answers, as they come."""
        for number, questions, answers in self._answered(plans, own=True):
            yield number, self._asker.outputs(questions, answers)

    def _answered(
        self, plans: Sequence[Plan], *, own: bool
    ) -> Iterator[tuple[int, Questions, Answers]]:
        asked: dict[int, Questions] = {}

        def jobs() -> Iterator[Questions]:
            for number, plan in enumerate(plans):
                asked[number] = self._asker.questions(plan, own=own)
                yield asked[number]

        with closing(self._pool.stream(jobs(), rows=sum(map(len, plans)))) as stream:
            for number, answers in stream:
                questions = asked.pop(number)
                if isinstance(answers, BadLogits):
                    raise self._asker.named(answers, plans[number], questions) from answers
                if isinstance(answers, BrocaError):
                    raise answers
                yield number, questions, answers

    def _parts(self, plan: Plan) -> list[NDArray[np.intp]]:
        """Rows for each batch: some batches for every worker."""
        if not len(plan):
            return []
        pieces = min(len(plan), 4 * max(1, len(self._pool.workers)))
        return [part.astype(np.intp) for part in np.array_split(np.arange(len(plan)), pieces)]


def require_ray() -> Any:
    """Returns the package `ray`.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MissingExtra("--executor ray needs Ray: pip install 'broca[ray]'") from error
    return ray


def _plan(
    resources: dict[str, float], options: RayOptions, spec: WorkerSpec
) -> tuple[int, float, WorkerSpec]:
    """How many workers there are, the GPUs of each, and how they load the model.

    Raises:
        BadInput: The cluster has no room for them.
    """
    cpus, all_gpus = int(resources.get("CPU", 0)), resources.get("GPU", 0.0)
    gpus = options.gpus_per_worker
    if gpus is None:
        gpus = 1.0 if all_gpus >= 1 else 0.0
    room = min(cpus, int(all_gpus / gpus + 1e-9)) if gpus else cpus
    count = room if options.workers is None else options.workers
    if count > room or count < 1:
        raise BadInput(
            f"--workers {count} with {gpus:g} GPUs each: the cluster has room for {room} ({cpus} "
            f"cores, {all_gpus:g} GPUs); give fewer --workers or --gpus-per-worker"
        )
    if not gpus:
        threads = max(1, cpus // count)
        return count, gpus, replace(spec, device="cpu", device_map=None, threads=threads)
    return count, gpus, replace(spec, device_map="auto" if gpus > 1 else spec.device_map)


def _next(stream: object, numbered: Iterator[tuple[int, Questions]]) -> _Job | None:
    for number, questions in numbered:
        return _Job(stream, number, questions)
    return None


def _cut(lengths: Sequence[int], tokens: int) -> Iterator[NDArray[np.intp]]:
    """Runs of consecutive positions of about `tokens` tokens each."""
    if lengths:
        batch = (np.cumsum(lengths) - 1) // max(1, tokens)
        yield from np.split(np.arange(len(lengths)), np.flatnonzero(np.diff(batch)) + 1)


def _rows(plan: Plan, rows: NDArray[np.intp]) -> Plan:
    """Some rows of a plan, with all its masks."""
    return replace(plan, mask_index=plan.mask_index[rows], item_index=plan.item_index[rows])


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[-1]}" if text else type(error).__name__
