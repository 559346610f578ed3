"""Answers jobs on the workers of a Ray cluster, each with its own model and engine.

A worker gets one job at a time and the next as soon as it is done, so that a slow worker delays no
other. Only the driver makes jobs, scores answers and writes the journal. If a worker dies or hangs,
its job goes to another worker, and a new worker is started.
"""

from __future__ import annotations

import os
import platform
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import torch

from broca.engine import Answers, Engine, EngineOptions, Job, Progress, RunnerSpec
from broca.errors import BadInput, BrocaError, ExecutorFailed, MissingExtra
from broca.executors.process import tune_process
from broca.models import GatedModel, load
from broca.models.checkpoints import go_offline
from broca.options import ExecutorOptions, ModelOptions

ATTEMPTS = 3
"""Maximum number of attempts of a job, and of consecutive failed starts of a worker."""

START_LIMIT_S = 3600.0
"""Maximum seconds for loading the model."""

_LOOK_S = 1.0
"""Seconds between two checks of time limits."""


@dataclass(frozen=True)
class Recipe:
    """How every worker loads the driver's model: by the same name and options.

    A model in the driver's memory is sent to the workers instead.

    Attributes:
        model: Name, folder or hub id.
        identity: Digest of the driver's model; a worker's must be equal.
        loading: Model options; without a device, the worker's own GPU is used.
        offline: Whether to make no network call.
        threads: Number of threads of a model on a CPU.
        options: Options of the engine.
        held: The transformers model and its tokenizer, if they cannot be loaded by a name.
    """

    model: str
    identity: str
    loading: ModelOptions = field(default_factory=ModelOptions)
    offline: bool = False
    threads: int = 1
    options: EngineOptions = field(default_factory=EngineOptions)
    held: tuple[Any, Any] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, spec: RunnerSpec) -> Recipe:
        """Returns the recipe of the workers of a runner."""
        model, source = spec.model, spec.model.source or spec.model.name
        folder = os.path.expanduser(source)
        return cls(
            model=os.path.abspath(folder) if os.path.isdir(folder) else source,
            identity=model.identity,
            loading=replace(
                spec.model_options, dtype=model.dtype, components=model.kinds,
                revision=model.revision, device=None,
            ),
            offline=os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"),
            options=spec.engine_options,
            held=None if model.source else (model.model, model.tokenizer),
        )  # fmt: skip


class Loaded(NamedTuple):
    """The properties of a worker that has loaded the model."""

    identity: str
    token_budget: int
    device: str
    node: str
    process: int


Setting = tuple[str, tuple[torch.Tensor, ...], Any]
"""The key, the donors and the changed weights of a `RunnerSpec`."""


class Worker:
    """Loads the model and answers jobs; errors of broca are replies, since no worker is at fault.

    Args:
        recipe: The model to load.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._model: GatedModel
        self._engines: dict[str, Engine] = {}

    def load(self) -> Loaded | BrocaError:
        """Loads the model."""
        recipe = self._recipe
        tune_process()
        torch.set_num_threads(recipe.threads)
        if recipe.offline:
            go_offline()
        try:
            if recipe.held is None:
                self._model = load(recipe.model, **asdict(recipe.loading))
            else:
                model, tokenizer = recipe.held
                device = recipe.loading.device or ("cuda" if torch.cuda.is_available() else "cpu")
                self._model = GatedModel.wrap(
                    model.to(device), tokenizer, name=recipe.model,
                    components=recipe.loading.components,
                )  # fmt: skip
        except BrocaError as error:
            return error
        model, budget = self._model, self._engine(("", (), None)).token_budget
        return Loaded(model.identity, budget, model.device.type, platform.node(), os.getpid())

    def answer(self, job: Job, setting: Setting) -> Answers | BrocaError:
        """Returns the answers."""
        try:
            return self._engine(setting).answer(job)
        except BrocaError as error:
            return error

    def _engine(self, setting: Setting) -> Engine:
        """Returns the engine of a setting; all engines share the model."""
        key, donors, delta = setting
        if key not in self._engines:
            self._engines[key] = RunnerSpec(
                model=self._model,
                donors=tuple(values.to(self._model.device) for values in donors),
                delta=delta,
                engine_options=self._recipe.options,
            ).engine()
        return self._engines[key]


@dataclass
class _Task:
    """A job with its attempts, for one of the streams."""

    stream: object
    job: Job
    setting: Any
    attempts: int = 0


@dataclass
class _Member:
    """A worker: its actor, its deadline, its properties once it has loaded, and its task."""

    actor: Any
    deadline: float
    loaded: Loaded | None = None
    task: _Task | None = None


class RayPool:
    """Workers of a Ray cluster.

    Args:
        recipe: The model that they load.
        options: Number of workers, their GPUs, the cluster, and the time limit of a job.
        make_room: Called before workers start if the cluster has no room for them.
    """

    def __init__(
        self,
        recipe: Recipe,
        options: ExecutorOptions,
        make_room: Callable[[], None] = lambda: None,
    ) -> None:
        self.recipe, self.options, self._make_room = recipe, options, make_room
        self._ray = require_ray()
        self._busy: dict[Any, _Member] = {}
        self.idle: list[_Member] = []
        self._failed_starts = 0
        self.reason = ""
        self._started_ray = self._paused = False
        self._shipped: dict[str | None, Any] = {}
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def pause(self) -> None:
        """Stops all workers; they start again on the next use."""
        for member in [*self._busy.values(), *self.idle]:
            self._end(member)
        self._busy, self.idle, self._shipped, self._paused = {}, [], {}, True

    def close(self) -> None:
        """Stops all workers, and Ray if this pool started it."""
        self.pause()
        if self._started_ray:
            self._ray.shutdown()
            self._started_ray = False

    @property
    def workers(self) -> list[Loaded]:
        """The workers that can answer now."""
        members = [*self._busy.values(), *self.idle]
        return [member.loaded for member in members if member.loaded is not None]

    def shipped(self, setting: Setting) -> Any:
        """Returns a reference to a setting that all workers can read, and resumes after a pause."""
        if self._paused:
            self._start_all()
        if setting[0] not in self._shipped:
            self._shipped[setting[0]] = self._ray.put(setting)
        return self._shipped[setting[0]]

    def works_on(self, stream: object) -> bool:
        """Whether a worker is busy with a job of a stream."""
        return any(member.task and member.task.stream is stream for member in self._busy.values())

    def _open(self) -> None:
        """Joins or starts a cluster, and waits for the first worker."""
        ray, address = self._ray, self.options.address
        if not ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
            quiet = {"include_dashboard": False} if address is None else {}
            try:
                ray.init(
                    address=address or "local", log_to_driver=False, logging_level="ERROR", **quiet
                )
            except Exception as error:  # Ray raises bare exceptions too
                ray.shutdown()  # the parts of it that had started
                if address is None:
                    raise ExecutorFailed(f"Ray does not start here: {_line(error)}") from error
                raise BadInput(
                    f"no Ray cluster at '{address}': {_line(error)}; start one with ray "
                    "start --head, or leave `address` out"
                ) from error
            self._started_ray = True
        resources = ray.cluster_resources()
        self._count, self._gpus, self.recipe = workers_of(resources, self.options, self.recipe)
        self._start_all()
        self.first = self.workers[0]

    def _start_all(self) -> None:
        """Starts the workers, and waits for the first."""
        needed = {"CPU": float(self._count), "GPU": self._count * self._gpus}
        free = self._ray.available_resources()
        if any(free.get(name, 0.0) < number for name, number in needed.items()):
            self._make_room()
        self._paused = False
        for _ in range(self._count):
            self._start()
        while not self.idle:
            for _ in self.wait():
                pass

    def _start(self) -> None:
        """Starts a worker, which loads the model.

        Raises:
            BadInput: The model is in memory and cannot be sent to another process.
        """
        if None not in self._shipped:
            try:
                self._shipped[None] = self._ray.put(self.recipe)
            except Exception as error:  # pickling a caller's object may raise anything
                raise BadInput(
                    f"model '{self.recipe.model}' is in memory and cannot be sent to Ray's "
                    f"workers ({_line(error)}): save it with save_pretrained and load the folder, "
                    "or use another `executor` such as local"
                ) from error
        remote = self._ray.remote(Worker).options(
            num_cpus=1, num_gpus=self._gpus, max_restarts=0, scheduling_strategy="SPREAD"
        )
        actor = remote.remote(self._shipped[None])
        self._busy[actor.load.remote()] = _Member(actor, time.monotonic() + START_LIMIT_S)

    def give(self, task: _Task) -> None:
        """Sends a task to an idle worker."""
        member = self.idle.pop()
        task.attempts += 1
        member.task = task
        member.deadline = time.monotonic() + self.options.batch_limit
        self._busy[member.actor.answer.remote(task.job, task.setting)] = member

    def wait(self) -> Iterator[tuple[_Task, Answers | BrocaError | None]]:
        """Waits for workers; yields tasks with their replies, or None if they are lost.

        Raises:
            ExecutorFailed: No worker is left, or one could not load the model or loaded another.
        """
        if not self._busy:
            raise ExecutorFailed(
                f"no worker is left ({self.reason}); everything that was measured is kept: look "
                "at the workers' machines, then give the same command again"
            )
        ready, _ = self._ray.wait(list(self._busy), num_returns=1, timeout=_LOOK_S)
        now = time.monotonic()
        late = [ref for ref, m in self._busy.items() if m.deadline < now and ref not in ready]
        for ref in (*ready, *late):
            member = self._busy.pop(ref)
            task, member.task = member.task, None
            where = "" if member.loaded is None else f" on {member.loaded.node}"
            reply: Any = None
            try:
                if ref in late:
                    self.reason = f"a worker{where} did not answer within its limit"
                else:
                    reply = self._ray.get(ref)
            except self._ray.exceptions.RayTaskError as error:
                self.reason = f"a worker failed with {_line(error.cause)}"
            except self._ray.exceptions.RayError as error:
                self.reason = f"a worker{where} died ({type(error).__name__})"
            if reply is None:
                self._end(member)
                self._failed_starts += task is None
                if self._failed_starts < ATTEMPTS:
                    self._start()
                if task is not None:
                    yield task, None
                continue
            self.idle.append(member)
            if task is not None:
                yield task, reply
            elif isinstance(reply, BrocaError):
                raise ExecutorFailed(f"a worker cannot load the model: {reply}")
            elif reply.identity != self.recipe.identity:
                raise ExecutorFailed(
                    f"a worker on {reply.node} loaded other weights or settings of "
                    f"'{self.recipe.model}' than this process (digest {reply.identity[:12]}, here "
                    f"{self.recipe.identity[:12]}): give every machine the same files and packages"
                )
            else:
                member.loaded, self._failed_starts = reply, 0

    def _end(self, member: _Member) -> None:
        if self._ray.is_initialized():
            self._ray.kill(member.actor, no_restart=True)


class RayRunner:
    """Answers jobs on the workers of a pool, under some donors and changes of weights.

    Args:
        pool: The workers.
        spec: What is measured.
    """

    concurrent = True

    def __init__(self, pool: RayPool, spec: RunnerSpec) -> None:
        self._pool = pool
        self._setting = spec.key, tuple(values.cpu() for values in spec.donors), spec.delta
        self._on_progress = spec.on_progress

    @property
    def token_budget(self) -> int:
        """Maximum number of tokens of a batch, by the first worker."""
        return self._pool.first.token_budget

    @property
    def device(self) -> str:
        """The kind of device that workers run on."""
        return self._pool.first.device

    def stream(self, jobs: Iterable[Job], *, rows: int) -> Iterator[Answers]:
        """Sends jobs to workers and yields their answers; see `Runner.stream`.

        Raises:
            BrocaError: The model or a job is at fault.
            ExecutorFailed: A job was lost too often, or no worker is left.
        """
        pool, stream = self._pool, object()
        setting = pool.shipped(self._setting)
        tasks = (_Task(stream, job, setting) for job in jobs)
        again, following = deque[_Task](), next(tasks, None)
        done, tokens, failure = 0, 0, ""

        def give_out() -> None:
            nonlocal following
            while pool.idle and not failure and (again or following is not None):
                if again:
                    pool.give(again.popleft())
                elif following is not None:
                    pool.give(following)
                    following = next(tasks, None)

        while True:
            give_out()
            if not pool.works_on(stream):
                if failure:
                    raise ExecutorFailed(failure)
                if not again and following is None:
                    return
            for task, reply in pool.wait():
                if task.stream is not stream:
                    continue  # of a stream that was abandoned
                if reply is None:
                    again.append(task)
                    if task.attempts >= ATTEMPTS:  # raised after the others' jobs
                        failure = (
                            f"a batch of {task.job.rows} rows was lost {task.attempts} times, the "
                            f"last time because {pool.reason}; everything else that was measured "
                            "is kept: look at the workers' machines, then give the same command "
                            "again"
                        )
                    continue
                if isinstance(reply, BrocaError):
                    raise reply
                done, tokens = done + task.job.rows, tokens + reply.tokens
                self._on_progress(Progress(done, rows, tokens))
                give_out()  # the caller may take long with these answers
                yield reply


class RayHost:
    """Runs engines in workers of a Ray cluster, with a pool of workers for each model.

    Args:
        options: Options of the workers.

    Raises:
        MissingExtra: Ray is not installed.
    """

    def __init__(self, options: ExecutorOptions) -> None:
        require_ray()
        self._options = options
        self._pools: dict[tuple[str, str, EngineOptions], RayPool] = {}

    def runner(self, spec: RunnerSpec) -> RayRunner:
        """Makes a runner on the workers of the model, which are started on first use."""
        key = (spec.model.identity, spec.model.kinds, spec.engine_options)
        if key not in self._pools:
            make_room = partial(self._pause_others, key)
            self._pools[key] = RayPool(Recipe.of(spec), self._options, make_room)
        return RayRunner(self._pools[key], spec)

    def _pause_others(self, key: tuple[str, str, EngineOptions]) -> None:
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


def workers_of(
    resources: dict[str, float], options: ExecutorOptions, recipe: Recipe
) -> tuple[int, float, Recipe]:
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
    loading, threads = recipe.loading, recipe.threads
    if not gpus:
        loading = replace(loading, device="cpu", device_map=None)
        threads = max(1, cpus // count)
    elif gpus > 1:
        loading = replace(loading, device_map="auto")
    return count, gpus, replace(recipe, loading=loading, threads=threads)


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[-1]}" if text else type(error).__name__
