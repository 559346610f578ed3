"""Executors by name: what makes the runners that answer jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from broca.engine import Answers, Engine, EngineOptions, Job, Progress, WeightDelta
from broca.models import GatedModel
from broca.options import ExecutorOptions, ModelOptions


class Runner(Protocol):
    """What answers jobs: an engine of this process, or workers."""

    @property
    def concurrent(self) -> bool:
        """Whether several jobs are answered at the same time."""

    @property
    def token_budget(self) -> int:
        """Maximum number of tokens of a batch."""

    @property
    def device(self) -> str:
        """The kind of device that the model runs on, such as `cpu`."""

    def stream(self, jobs: Iterable[Job], *, rows: int) -> Iterator[Answers]:
        """Yields the answers to jobs of `rows` rows in all, in any order.

        A job is taken when there is a worker for it. A `BadLogits` has the number of its job.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class RunnerSpec:
    """What a runner is made of.

    Attributes:
        model: The model of this process.
        key: Equal keys mean equal donors and changes of weights.
        donors: Replacements of ablated activations, in the order of the model's gate points.
        delta: Changed weights.
        engine_options: Options of the engine.
        model_options: How other processes load the model.
        on_progress: Called after every batch.
    """

    model: GatedModel
    key: str = ""
    donors: tuple[Tensor, ...] = field(default=(), repr=False)
    delta: WeightDelta | None = None
    engine_options: EngineOptions = field(default_factory=EngineOptions)
    model_options: ModelOptions = field(default_factory=ModelOptions)
    on_progress: Callable[[Progress], None] = lambda progress: None

    def engine(self) -> Engine:
        """Makes an engine of this process."""
        points = self.model.points if self.donors else ()
        return Engine(
            self.model,
            self.engine_options,
            donors=dict(zip(points, self.donors, strict=True)),
            delta=self.delta,
            on_progress=self.on_progress,
        )


class Host(Protocol):
    """Makes runners for any number of runs, and stops the workers that it started."""

    def runner(self, spec: RunnerSpec) -> Runner:
        """Makes a runner.

        Raises:
            BadInput: The cluster has no room, or the model cannot be sent to another process.
            ExecutorFailed: No worker could be started.
        """

    def close(self) -> None:
        """Stops all workers that were started."""


@dataclass(frozen=True, kw_only=True)
class ExecutorKind:
    """The record of an executor. A new executor is a file that defines its record.

    Attributes:
        name: Name of the executor in `executor`.
        help: Description in one sentence.
        open: Makes its host; refuses invalid options before anything is loaded.
        takes: The fields of `ExecutorOptions` that only some executors take, and this one does.
        settings: Class of its settings, which a caller can give as `executor` in place of the name.
    """

    name: str
    help: str
    open: Callable[[ExecutorOptions], Host]
    takes: tuple[str, ...] = ()
    settings: type[Any] | None = None


class LocalHost:
    """Makes engines of this process."""

    def runner(self, spec: RunnerSpec) -> Engine:
        """Makes an engine."""
        return spec.engine()

    def close(self) -> None:
        """Does nothing: nothing was started."""


LOCAL = ExecutorKind(name="local", help="In this process.", open=lambda options: LocalHost())
