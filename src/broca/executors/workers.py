"""What runs in a worker on another process or machine: one model and its engine."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from broca.engine import Engine, EngineOptions
from broca.errors import BadLogits, BrocaError, all_errors
from broca.executors.asking import Answers, Questions, answer
from broca.executors.process import tune_process
from broca.models import GatedModel, GatePoint, load
from broca.models.hub import go_offline


@dataclass(frozen=True)
class WorkerSpec:
    """What every worker loads: the driver's model, by the same name, with the same options.

    Attributes:
        model: Name, folder or hub id.
        dtype: Number format of the weights.
        components: Which parts can be ablated.
        fingerprint: Digest of the driver's weights; a worker's must be equal.
        device: Device; None for the worker's own GPU.
        device_map: `auto` spreads the model over the worker's GPUs.
        allow_pickle: Whether weights in pickle format may be loaded.
        offline: Make no network call.
        threads: Threads of a model on a CPU.
        options: Of the engine.
        donors: What stands in for ablated activations, in the order of the model's gate points.
    """

    model: str
    dtype: str
    components: str
    fingerprint: str
    device: str | None = None
    device_map: str | None = None
    allow_pickle: bool = False
    offline: bool = False
    threads: int = 1
    options: EngineOptions = field(default_factory=EngineOptions)
    donors: tuple[Tensor, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        model: GatedModel,
        *,
        options: EngineOptions | None = None,
        donors: dict[GatePoint, Tensor] | None = None,
        device_map: str | None = None,
        allow_pickle: bool = False,
    ) -> WorkerSpec:
        """What workers have to load to answer as `model` does."""
        folder = os.path.expanduser(model.name)
        return cls(
            model=os.path.abspath(folder) if os.path.isdir(folder) else model.name,
            dtype=model.dtype,
            components=model.kinds,
            fingerprint=model.fingerprint,
            device_map=device_map,
            allow_pickle=allow_pickle,
            offline=os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"),
            options=options or EngineOptions(),
            donors=tuple(donors[point].cpu() for point in model.points) if donors else (),
        )


@dataclass(frozen=True)
class Loaded:
    """What a worker says of itself once it can answer."""

    fingerprint: str
    token_budget: int
    device: str
    node: str
    process: int


@dataclass(frozen=True)
class Refusal:
    """An error that broca raised in a worker, as plain data: it is no fault of the worker."""

    kind: str
    message: str
    request: int = 0

    @classmethod
    def of(cls, error: BrocaError) -> Refusal:
        """Writes an error down."""
        return cls(type(error).__name__, str(error), getattr(error, "request", 0))

    def error(self) -> BrocaError:
        """The error again."""
        if self.kind == BadLogits.__name__:
            return BadLogits(self.message, request=self.request)
        kinds = {one.__name__: one for one in all_errors()}
        return kinds.get(self.kind, BrocaError)(self.message)


class Worker:
    """Loads the model and answers questions, one batch of rows after another.

    Args:
        spec: What to load.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec
        self._engine: Engine

    def load(self) -> Loaded | Refusal:
        """Loads the model."""
        spec = self._spec
        tune_process()
        torch.set_num_threads(spec.threads)
        if spec.offline:
            go_offline()
        try:
            model = load(
                spec.model,
                dtype=spec.dtype,
                components=spec.components,
                device=spec.device,
                device_map=spec.device_map,
                allow_pickle=spec.allow_pickle,
            )
        except BrocaError as error:
            return Refusal.of(error)
        donors: dict[GatePoint, Tensor] = {}
        if spec.donors:
            donors = {
                point: values.to(model.device)
                for point, values in zip(model.points, spec.donors, strict=True)
            }
        self._engine = Engine(model, spec.options, donors=donors)
        return Loaded(
            model.fingerprint,
            self._engine.token_budget,
            model.device.type,
            platform.node(),
            os.getpid(),
        )

    def answer(self, questions: Questions) -> tuple[Answers | Refusal, int]:
        """The answers, and how many tokens they took."""
        before = self._engine.tokens
        found: Any
        try:
            found = answer(self._engine, questions)
        except BrocaError as error:
            found = Refusal.of(error)
        return found, self._engine.tokens - before
