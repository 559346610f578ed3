"""Runs plans on the workers of a Ray cluster, each with its own model.

A worker gets one batch of rows at a time and the next as soon as it is done, so that a slow worker
delays no other. Only the driver makes questions, scores answers and writes the journal. If a worker
dies or hangs, its batch goes to another worker, and a new worker is started.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from broca.engine import EngineOptions, Progress
from broca.errors import BadInput, BadLogits, BrocaError, ExecutorFailed, MissingExtra
from broca.executors.asking import Answers, Asker, Job, Observations, Questions
from broca.executors.base import Setting
from broca.executors.records import ExecutorKind, ExecutorSpec
from broca.executors.workers import Loaded, Refusal, Worker, WorkerSpec
from broca.measurement import Measurement, Observation, Plan
from broca.options import ExecutorOptions, require_workers
from broca.tasks import Output

_LOOK_S = 1.0
"""Seconds between two checks of time limits."""


@dataclass(frozen=True)
class RayOptions:
    """Options of the workers and their failures.

    Attributes:
        address: A running cluster, such as `auto`; None starts one on this machine for the run.
        workers: Number of workers; None for as many as the cluster can hold.
        gpus_per_worker: GPUs of each worker; more than one spreads the model over them. None stands
            for 1 if the cluster has GPUs, else 0.
        attempts: Maximum number of attempts of a batch, and of consecutive failed starts of a
            worker.
        batch_limit_s: Seconds of a batch after which a worker counts as hung.
        start_limit_s: Maximum seconds for loading the model.

    Raises:
        BadInput: A number is out of range.
    """

    address: str | None = None
    workers: int | None = None
    gpus_per_worker: float | None = None
    attempts: int = 3
    batch_limit_s: float = 1800.0
    start_limit_s: float = 3600.0

    def __post_init__(self) -> None:
        require_workers(self.workers, self.gpus_per_worker)
        if not (self.attempts >= 1 and self.batch_limit_s > 0 and self.start_limit_s > 0):
            raise BadInput("attempts and limits of the Ray executor must be positive")


@dataclass
class _Batch:
    """A batch of rows or observations with its attempts."""

    stream: object
    number: int
    job: Job
    setting: Any
    attempts: int = 0


@dataclass
class _Member:
    """A worker: its actor, its properties, and its deadline."""

    actor: Any
    deadline: float
    loaded: Loaded | None = None
    batch: _Batch | None = None


@dataclass
class RayPool:
    """Workers of a Ray cluster; leaving the context stops them.

    Args:
        spec: The model that they load.
        options: Options of the workers.
        make_room: Called before workers start if the cluster has no room for them.
    """

    spec: WorkerSpec
    options: RayOptions = field(default_factory=RayOptions)
    make_room: Callable[[], None] = lambda: None
    tokens: int = field(default=0, init=False)
    """Number of tokens that workers have read or generated in finished batches."""

    def __post_init__(self) -> None:
        self._ray = require_ray()
        self._busy: dict[Any, _Member] = {}
        self._idle: list[_Member] = []
        self._failed_starts = 0
        self._reason = ""
        self._started_ray = False
        self._paused = False
        self._gpus = 0.0
        self._settings: dict[str, Any] = {}
        self._shipped_model: Any = None

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pause(self) -> None:
        """Stops all workers; they start again on the next use."""
        for member in [*self._busy.values(), *self._idle]:
            self._end(member)
        self._busy, self._idle, self._settings, self._shipped_model = {}, [], {}, None
        self._paused = True

    def close(self) -> None:
        """Stops all workers, and Ray if this pool started it."""
        self.pause()
        if self._started_ray:
            self._ray.shutdown()
            self._started_ray = False

    @property
    def workers(self) -> list[Loaded]:
        """The workers that can answer now."""
        members = [*self._busy.values(), *self._idle]
        return [member.loaded for member in members if member.loaded is not None]

    @property
    def token_budget(self) -> int:
        """Maximum number of tokens of a batch, by the first worker."""
        return self._first.token_budget

    @property
    def device(self) -> str:
        """The kind of device that workers run on."""
        return self._first.device

    def stream(
        self,
        jobs: Iterable[Job],
        *,
        rows: int,
        setting: Setting,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Generator[tuple[int, Answers | BrocaError], None, None]:
        """Sends batches to workers and yields the number of each with its answers.

        Args:
            jobs: The batches, each made when a worker is free for it.
            rows: Number of rows of all batches.
            setting: Setting of the workers' engines besides the model.
            on_progress: Called after every batch.

        Raises:
            ExecutorFailed: A batch was lost too often, or no worker is left.
        """
        if self._paused:
            self._start_all()
        me, numbered, again = object(), enumerate(jobs), deque[_Batch]()
        shipped = self._ship(setting)
        done, start, more = 0, self.tokens, True
        failure: ExecutorFailed | None = None

        def give_out() -> None:
            nonlocal more
            while self._idle and (again or more) and failure is None:
                batch = again.popleft() if again else _next(me, numbered, shipped)
                if batch is None:
                    more = False
                else:
                    self._give(batch)

        while True:
            give_out()
            mine = any(
                member.batch is not None and member.batch.stream is me
                for member in self._busy.values()
            )
            if failure is not None and not mine:
                raise failure
            if not (more or again or mine):
                return
            for batch, answers in self._wait():
                if batch.stream is not me:
                    continue  # of a stream that was abandoned
                if answers is None:
                    again.append(batch)
                    if batch.attempts >= self.options.attempts:
                        failure = self._lost_too_often(batch)  # after the others' batches
                    continue
                done += batch.job.rows
                self.tokens += answers[1]
                if on_progress is not None:
                    on_progress(Progress(done, rows, self.tokens - start))
                give_out()  # the caller may take long with these answers
                reply = answers[0]
                yield batch.number, reply.error() if isinstance(reply, Refusal) else reply

    def _ship(self, setting: Setting) -> Any:
        """Returns a reference to a setting in the cluster's object store."""
        if setting.key not in self._settings:
            self._settings[setting.key] = self._ray.put(setting)
        return self._settings[setting.key]

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
            except Exception as error:  # Ray raises bare exceptions too
                ray.shutdown()  # the parts of it that had started
                if options.address is None:
                    raise ExecutorFailed(f"Ray does not start here: {_line(error)}") from error
                raise BadInput(
                    f"no Ray cluster at '{options.address}': {_line(error)}; start one with ray "
                    "start --head, or leave `address` out"
                ) from error
            self._started_ray = True
        count, self._gpus, self.spec = _plan(ray.cluster_resources(), options, self.spec)
        self._count = count
        self._start_all()
        (self._first,) = self.workers[:1]

    def _start_all(self) -> None:
        """Starts the workers, and waits for the first."""
        needed = {"CPU": float(self._count), "GPU": self._count * self._gpus}
        free = self._ray.available_resources()
        if any(free.get(name, 0.0) < number for name, number in needed.items()):
            self.make_room()
        self._paused = False
        for _ in range(self._count):
            self._start()
        while not self._idle:
            for _ in self._wait():
                pass

    def _start(self) -> None:
        """Starts a worker, which loads the model."""
        remote = self._ray.remote(Worker)
        if self.spec.held is not None and self._shipped_model is None:
            self._shipped_model = self._put_model()
        actor = remote.options(
            num_cpus=1, num_gpus=self._gpus, max_restarts=0, scheduling_strategy="SPREAD"
        ).remote(replace(self.spec, held=None), self._shipped_model)
        member = _Member(actor, time.monotonic() + self.options.start_limit_s)
        self._busy[actor.load.remote()] = member

    def _put_model(self) -> Any:
        """Puts a model in memory into the cluster's object store.

        Raises:
            BadInput: The model cannot be sent to another process.
        """
        try:
            return self._ray.put(self.spec.held)
        except Exception as error:  # pickling a caller's object may raise anything
            raise BadInput(
                f"model '{self.spec.model}' is in memory and cannot be sent to Ray's "
                f"workers ({_line(error)}): save it with save_pretrained and load the folder, or "
                "use another `executor` such as local"
            ) from error

    def _give(self, batch: _Batch) -> None:
        """Sends a batch to an idle worker."""
        member = self._idle.pop()
        batch.attempts += 1
        member.batch = batch
        member.deadline = time.monotonic() + self.options.batch_limit_s
        self._busy[member.actor.answer.remote(batch.job, batch.setting)] = member

    def _wait(self) -> Iterator[tuple[_Batch, tuple[Answers | Refusal, int] | None]]:
        """Waits for workers; yields batches with their answers, or None if lost."""
        if not self._busy:
            raise ExecutorFailed(
                f"no worker is left ({self._reason}); everything that was measured is kept: look "
                "at the workers' machines, then give the same command again"
            )
        ready, _ = self._ray.wait(list(self._busy), num_returns=1, timeout=_LOOK_S)
        now = time.monotonic()
        late = [
            ref for ref, member in self._busy.items() if member.deadline < now and ref not in ready
        ]
        for ref in (*ready, *late):
            member = self._busy.pop(ref)
            batch, member.batch = member.batch, None
            try:
                reply = self._reply(ref, member, late=ref in late)
            except _Lost as error:
                self._reason = str(error)
                self._end(member)
                self._replace(starting=batch is None)
                if batch is not None:
                    yield batch, None
                continue
            self._idle.append(member)
            if batch is None:
                self._welcome(member, reply)
            else:
                yield batch, reply

    def _reply(self, ref: Any, member: _Member, *, late: bool) -> Any:
        """Returns the reply of a worker.

        Raises:
            _Lost: The worker died, hung, or failed in an unknown way.
        """
        where = "" if member.loaded is None else f" on {member.loaded.node}"
        if late:
            raise _Lost(f"a worker{where} did not answer within its limit")
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            raise _Lost(f"a worker failed with {_line(error.cause)}") from error
        except self._ray.exceptions.RayError as error:
            raise _Lost(f"a worker{where} died ({type(error).__name__})") from error

    def _welcome(self, member: _Member, reply: Loaded | Refusal) -> None:
        """Admits a worker that has loaded the model.

        Raises:
            ExecutorFailed: The worker could not load the model, or loaded another one.
        """
        if isinstance(reply, Refusal):
            raise ExecutorFailed(f"a worker cannot load the model: {reply.message}")
        if reply.identity != self.spec.identity:
            raise ExecutorFailed(
                f"a worker on {reply.node} loaded other weights or settings of '{self.spec.model}' "
                f"than this process (digest {reply.identity[:12]}, here "
                f"{self.spec.identity[:12]}): give every machine the same files and packages"
            )
        member.loaded = reply
        self._failed_starts = 0

    def _replace(self, *, starting: bool) -> None:
        """Replaces a lost worker, unless workers cannot be started."""
        if starting:
            self._failed_starts += 1
        if self._failed_starts < self.options.attempts:
            self._start()

    def _lost_too_often(self, batch: _Batch) -> ExecutorFailed:
        return ExecutorFailed(
            f"a batch of {batch.job.rows} rows was lost {batch.attempts} times, the last time "
            f"because {self._reason}; everything else that was measured is kept: look at the "
            "workers' machines, then give the same command again"
        )

    def _end(self, member: _Member) -> None:
        if self._ray.is_initialized():
            self._ray.kill(member.actor, no_restart=True)


class _Lost(Exception):
    """A worker cannot be used any more; the message gives the reason."""


class RayExecutor:
    """Measures rows on the workers of a pool.

    Args:
        pool: The workers.
        asker: Turns plans into questions, and answers into responses.
        setting: Setting of the workers' engines besides the model.
        on_progress: Called after every batch.
    """

    concurrent = True

    def __init__(
        self,
        pool: RayPool,
        asker: Asker,
        *,
        setting: Setting | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.runner = pool
        self._asker = asker
        self._setting = setting or Setting()
        self._on_progress = on_progress

    def stream(self, plans: Sequence[Plan]) -> Generator[tuple[int, Measurement], None, None]:
        """Yields the position of every plan with its measurement, as they come.

        Raises:
            TaskUnusable: The response is a margin, and an item has no reference answer.
            BadLogits: The model returned NaN or infinite logits.
            ExecutorFailed: Workers died or hung too often.
        """
        for number, questions, answers in self._answered(plans, outputs=False):
            yield number, self._asker.measurement(plans[number], questions, answers)

    def stream_answers(
        self, plans: Sequence[Plan]
    ) -> Generator[tuple[int, list[tuple[Output, ...]]], None, None]:
        """Yields the position of every plan with its answers, as they come."""
        for number, questions, answers in self._answered(plans, outputs=True):
            yield number, self._asker.outputs(questions, answers)

    def stream_observations(
        self, batches: Sequence[Sequence[Observation]]
    ) -> Generator[tuple[int, list[NDArray[np.float32]]], None, None]:
        """Yields the position of every batch with its vectors, as they come."""
        jobs = (Observations(tuple(batch)) for batch in batches)
        for number, answers in self._results(jobs, rows=sum(map(len, batches))):
            if isinstance(answers, BrocaError):
                raise answers
            yield number, list(answers.vectors)

    def _answered(
        self, plans: Sequence[Plan], *, outputs: bool
    ) -> Iterator[tuple[int, Questions, Answers]]:
        pending: dict[int, Questions] = {}

        def jobs() -> Iterator[Questions]:
            for number, plan in enumerate(plans):
                pending[number] = self._asker.questions(plan, outputs=outputs)
                yield pending[number]

        for number, answers in self._results(jobs(), rows=sum(map(len, plans))):
            questions = pending.pop(number)
            if isinstance(answers, BadLogits):
                raise self._asker.named(answers, plans[number], questions) from answers
            if isinstance(answers, BrocaError):
                raise answers
            yield number, questions, answers

    def _results(
        self, jobs: Iterable[Job], *, rows: int
    ) -> Iterator[tuple[int, Answers | BrocaError]]:
        with closing(
            self.runner.stream(
                jobs, rows=rows, setting=self._setting, on_progress=self._on_progress
            )
        ) as stream:
            yield from stream


_Key = tuple[str, str, EngineOptions]
"""Key of the workers that can serve a run: the model's identity and components, the engine's
options."""


class RayHost:
    """Runs engines in workers of a Ray cluster, with a pool of workers for each model.

    Args:
        options: Options of the workers.

    Raises:
        MissingExtra: Ray is not installed.
    """

    def __init__(self, options: ExecutorOptions) -> None:
        require_ray()
        self._options = (
            options.executor
            if isinstance(options.executor, RayOptions)
            else RayOptions(
                address=options.address,
                workers=options.workers,
                gpus_per_worker=options.gpus_per_worker,
                batch_limit_s=options.batch_limit,
            )
        )
        self._pools: dict[_Key, RayPool] = {}

    def executor(self, spec: ExecutorSpec) -> RayExecutor:
        """Makes an executor on the workers of the model, which are started on first use."""
        model, options = spec.model, spec.engine_options
        key = (model.identity, model.kinds, options or EngineOptions())
        if key not in self._pools:
            worker_spec = WorkerSpec.of(model, options=options, model_options=spec.model_options)
            make_room = partial(self._pause_others, key)
            self._pools[key] = RayPool(worker_spec, self._options, make_room).__enter__()
        donors = tuple(values.cpu() for values in spec.setting.donors)
        return RayExecutor(
            self._pools[key],
            spec.asker,
            setting=replace(spec.setting, donors=donors),
            on_progress=spec.on_progress,
        )

    def _pause_others(self, key: _Key) -> None:
        """Stops the workers of other models to make room."""
        for pool_key, pool in self._pools.items():
            if pool_key != key:
                pool.pause()

    def close(self) -> None:
        """Stops all workers."""
        while self._pools:
            self._pools.popitem()[1].close()


def require_ray() -> Any:
    """Returns the package `ray`.

    Raises:
        MissingExtra: Ray is not installed.
    """
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MissingExtra("`executor` ray needs Ray: pip install 'broca[ray]'") from error
    return ray


def _plan(
    resources: dict[str, float], options: RayOptions, spec: WorkerSpec
) -> tuple[int, float, WorkerSpec]:
    """Returns the number of workers, the GPUs of each, and how they load the model.

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
            f"`workers` {count} with {gpus:g} GPUs each: the cluster has room for {room} ({cpus} "
            f"cores, {all_gpus:g} GPUs); give fewer `workers` or `gpus_per_worker`"
        )
    if not gpus:
        loading = replace(spec.loading, device="cpu", device_map=None)
        return count, gpus, replace(spec, loading=loading, threads=max(1, cpus // count))
    if gpus > 1:
        spec = replace(spec, loading=replace(spec.loading, device_map="auto"))
    return count, gpus, spec


def _next(stream: object, numbered: Iterator[tuple[int, Job]], setting: Any) -> _Batch | None:
    for number, job in numbered:
        return _Batch(stream, number, job, setting)
    return None


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[-1]}" if text else type(error).__name__


RAY = ExecutorKind(
    name="ray",
    help="In workers of a Ray cluster, each with its own model; lost workers are replaced.",
    open=RayHost,
    takes=("address", "workers", "gpus_per_worker"),
    settings=RayOptions,
)
