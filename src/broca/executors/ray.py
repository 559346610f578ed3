"""Answers jobs on the workers of a Ray cluster, each with its own model and engine.

A worker gets one job at a time and the next as soon as it is done, so that a slow worker delays no
other. Only the driver makes jobs, scores answers and writes the journal. If a worker dies or hangs,
its job goes to another worker, and a new worker is started.
"""

from __future__ import annotations

import os
import platform
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import torch

from broca.engine import Answers, Engine, EngineOptions, Job, Progress, RunnerSpec
from broca.errors import BadInput, BrocaError, ExecutorFailed, require_package
from broca.executors.process import tune_process
from broca.known_paths import PACKAGED_MODELS, SHIPPED_MODELS
from broca.models import GatedModel, load
from broca.models.checkpoints import go_offline
from broca.options import ExecutorOptions, ModelOptions

ATTEMPTS = 3
"""Maximum number of attempts of a job, and of consecutive failed starts of a worker."""

START_LIMIT_S = 3600.0
"""Maximum seconds for loading the model."""

_REACHED_S = 10.0
"""Seconds in which a cluster, and an idle worker, must be reached."""

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
        place, shipped = os.path.expanduser(source), (*SHIPPED_MODELS, *PACKAGED_MODELS)
        local = os.path.exists(place) and source not in shipped
        return cls(
            model=os.path.abspath(place) if local else source,
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


Setting = tuple[str, tuple[torch.Tensor, ...]]
"""The key and the donors of a `RunnerSpec`."""


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
                self._model = load(recipe.model, **recipe.loading.keywords())
            else:
                model, tokenizer = recipe.held
                device = recipe.loading.device or ("cuda" if torch.cuda.is_available() else "cpu")
                self._model = GatedModel.wrap(
                    model.to(device), tokenizer, name=recipe.model,
                    components=recipe.loading.components,
                )  # fmt: skip
        except BrocaError as error:
            return error
        model, budget = self._model, self._engine(("", ())).token_budget
        # a model that was sent has no files of its classes here
        identity = model.identity if recipe.held is None else recipe.identity
        return Loaded(identity, budget, model.device.type, platform.node(), os.getpid())

    def answer(self, job: Job, setting: Setting) -> Answers | BrocaError:
        """Returns the answers."""
        try:
            return self._engine(setting).answer(job)
        except BrocaError as error:
            return error

    def _engine(self, setting: Setting) -> Engine:
        """Returns the engine of a setting; all engines share the model."""
        key, donors = setting
        if key not in self._engines:
            model, options = self._model, self._recipe.options
            placed = tuple(values.to(model.device) for values in donors)
            spec = RunnerSpec(model=model, donors=placed, engine_options=options)
            self._engines[key] = spec.engine()
        return self._engines[key]


@dataclass
class _Member:
    """A worker: its actor, its deadline, its properties once it has loaded, and its job."""

    actor: Any
    deadline: float
    loaded: Loaded | None = None
    job: Job | None = None


_ON_OUR_RAY: list[RayPool] = []
"""The open pools, if the first of them started Ray."""


class RayPool:
    """Workers of a Ray cluster.

    Args:
        recipe: The model that they load.
        options: Number of workers, their GPUs, the cluster, and the time limit of a job.
        make_room: Called before the first worker starts.
    """

    def __init__(
        self, recipe: Recipe, options: ExecutorOptions, make_room: Callable[[], None] = lambda: None
    ) -> None:
        import ray  # the host has asked for it

        self.recipe, self.options, self._make_room = recipe, options, make_room
        self._ray: Any = ray
        self._busy: dict[Any, _Member] = {}
        self.idle: list[_Member] = []
        self._failed_starts = 0
        self.reason = ""
        self._shipped: dict[str | None, Any] = {}
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def stop(self) -> None:
        """Stops all workers; they start again on the next use."""
        for member in [*self._busy.values(), *self.idle]:
            self._end(member)
        self._busy, self.idle, self._shipped = {}, [], {}

    def close(self) -> None:
        """Stops all workers, and Ray with the last of the pools for which it was started."""
        self.stop()
        if self in _ON_OUR_RAY:
            _ON_OUR_RAY.remove(self)
            if not _ON_OUR_RAY:
                self._ray.shutdown()

    @property
    def workers(self) -> list[Loaded]:
        """The workers that can answer now."""
        members = [*self._busy.values(), *self.idle]
        return [member.loaded for member in members if member.loaded is not None]

    @property
    def works(self) -> bool:
        """Whether a worker is busy with a job."""
        return any(member.job is not None for member in self._busy.values())

    def _open(self) -> None:
        """Joins or starts a cluster, and waits for the first worker."""
        ray, address = self._ray, self.options.address
        ours = bool(_ON_OUR_RAY) or not ray.is_initialized()
        if not ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
            quiet = {"include_dashboard": False} if address is None else {}
            try:
                host, _, port = (address or "").rpartition("://")[2].rpartition(":")
                if port.isdigit():  # Ray itself would wait for many minutes
                    socket.create_connection((host, int(port)), _REACHED_S).close()
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
        if ours:
            _ON_OUR_RAY.append(self)
        resources = ray.cluster_resources()
        self._count, self._gpus, self.recipe = workers_of(resources, self.options, self.recipe)
        self.fill()
        while not self.idle:
            for _ in self.wait():
                pass
        self.first = self.workers[0]

    def fill(self) -> None:
        """Starts the workers that are missing, unless workers fail to start."""
        if not self._busy and not self.idle:
            self._make_room()
        while len(self._busy) + len(self.idle) < self._count and self._failed_starts < ATTEMPTS:
            self._start()

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

    def give(self, job: Job, setting: Setting) -> None:
        """Sends a job to an idle worker."""
        if setting[0] not in self._shipped:  # all workers can read it there
            self._shipped[setting[0]] = self._ray.put(setting)
        member = self.idle.pop()
        member.job = job
        member.deadline = time.monotonic() + self.options.batch_limit
        self._busy[member.actor.answer.remote(job, self._shipped[setting[0]])] = member

    def wait(self) -> Iterator[tuple[Job, Answers | BrocaError | None]]:
        """Waits for workers; yields jobs with their replies, or None if they are lost.

        Raises:
            ExecutorFailed: No worker is left, or one could not load the model or loaded another.
        """
        if not self._busy:
            raise ExecutorFailed(
                f"no worker is left ({self.reason}); everything that was measured is kept: look "
                "at the workers' machines, then give the same command again"
            )
        self._ray.wait(list(self._busy), num_returns=1, timeout=_LOOK_S)
        ready, _ = self._ray.wait(list(self._busy), num_returns=len(self._busy), timeout=0)
        now = time.monotonic()
        late = [ref for ref, m in self._busy.items() if m.deadline < now and ref not in ready]
        for ref in (*ready, *late):
            member = self._busy.pop(ref)
            job, member.job = member.job, None
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
                self.idle = [other for other in self.idle if self._lives(other)]
            if reply is None:
                self._end(member)
                self._failed_starts += job is None
                self.fill()
                if job is not None:
                    yield job, None
                continue
            self.idle.append(member)
            if job is not None:
                yield job, reply
            elif isinstance(reply, BrocaError):
                raise ExecutorFailed(f"a worker cannot load the model: {reply}")
            elif reply.identity != self.recipe.identity:
                raise ExecutorFailed(
                    f"a worker on {reply.node} loaded other weights, settings or code of "
                    f"'{self.recipe.model}' than this process (digest {reply.identity[:12]}, here "
                    f"{self.recipe.identity[:12]}): give every machine the same files and packages"
                )
            else:
                member.loaded, self._failed_starts = reply, 0

    def _lives(self, member: _Member) -> bool:
        """Whether an idle worker answers; what ended another one may have ended it too."""
        try:
            self._ray.get(member.actor.__ray_ready__.remote(), timeout=_REACHED_S)
        except self._ray.exceptions.RayError:
            self._end(member)
            return False
        return True

    def _end(self, member: _Member) -> None:
        if self._ray.is_initialized():
            self._ray.kill(member.actor, no_restart=True)


class RayRunner:
    """Answers jobs on the workers of a pool, under some donors.

    Args:
        pool: The workers.
        spec: What is measured.

    Attributes:
        token_budget: Maximum number of tokens of a batch, by the first worker.
        device: The kind of device that workers run on.
    """

    concurrent = True

    def __init__(self, pool: RayPool, spec: RunnerSpec) -> None:
        self._pool = pool
        self._setting = spec.key, tuple(values.cpu() for values in spec.donors)
        self._on_progress = spec.on_progress
        self.token_budget, self.device = pool.first.token_budget, pool.first.device

    def stream(self, jobs: Iterable[Job], *, rows: int) -> Iterator[Answers]:
        """Yields the answers to jobs of `rows` rows in all, in any order.

        A job is taken when there is a worker for it. A `BadLogits` has the number of its job.

        Raises:
            BrocaError: The model or a job is at fault.
            ExecutorFailed: A job was lost too often, or no worker is left.
        """
        pool, left = self._pool, iter(jobs)
        pool.fill()
        while pool.works:  # on jobs of a stream that its caller left
            for _ in pool.wait():
                pass
        lost, losses = deque[Job](), Counter[int]()
        done, tokens, failure = 0, 0, ""

        def give_out() -> None:
            while pool.idle and not failure:
                job = lost.popleft() if lost else next(left, None)
                if job is None:
                    return
                pool.give(job, self._setting)

        while done < rows:
            give_out()
            if failure and not pool.works:
                raise ExecutorFailed(failure)
            for job, reply in pool.wait():
                if reply is None:
                    lost.append(job)
                    losses[job.number] += 1
                    if losses[job.number] >= ATTEMPTS:  # raised after the others' jobs
                        failure = (
                            f"a batch of {job.rows} rows was lost {ATTEMPTS} times, the last time "
                            f"because {pool.reason}; everything else that was measured is kept: "
                            "look at the workers' machines, then give the same command again"
                        )
                    continue
                if isinstance(reply, BrocaError):
                    raise reply
                done, tokens = done + job.rows, tokens + reply.tokens
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
        require_package("ray", "`executor` ray needs Ray", "ray")
        self._options = options
        self._pools: dict[tuple[str, str, EngineOptions], RayPool] = {}

    def runner(self, spec: RunnerSpec) -> RayRunner:
        """Makes a runner on the workers of the model, which are started on first use."""
        key = (spec.model.identity, spec.model.kinds, spec.engine_options)
        if key not in self._pools:
            make_room = partial(self._stop_others, key)
            self._pools[key] = RayPool(Recipe.of(spec), self._options, make_room)
        return RayRunner(self._pools[key], spec)

    def _stop_others(self, key: tuple[str, str, EngineOptions]) -> None:
        """Stops the workers of other models, which start again on their next use."""
        for pool_key, pool in self._pools.items():
            if pool_key != key:
                pool.stop()

    def close(self) -> None:
        """Stops all workers."""
        while self._pools:
            self._pools.popitem()[1].close()


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
