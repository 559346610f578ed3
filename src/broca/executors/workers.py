"""The worker in another process or on another machine: a model and its engine."""

from __future__ import annotations

import os
import platform
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from broca.engine import Engine, EngineOptions
from broca.errors import BadLogits, BrocaError, all_errors
from broca.executors.asking import Answers, Job, answer
from broca.executors.base import Setting
from broca.executors.process import tune_process
from broca.models import GatedModel, GatePoint, load
from broca.models.hub import go_offline
from broca.options import ModelOptions


@dataclass(frozen=True)
class WorkerSpec:
    """The model that every worker loads: the driver's, by the same name and options.

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
    def of(
        cls,
        model: GatedModel,
        *,
        options: EngineOptions | None = None,
        model_options: ModelOptions | None = None,
    ) -> WorkerSpec:
        """Returns the specification of workers for `model`."""
        folder = os.path.expanduser(model.source or model.name)
        loading = replace(
            model_options or ModelOptions(), dtype=model.dtype, components=model.kinds,
            revision=model.revision, device=None,
        )  # fmt: skip
        return cls(
            model=os.path.abspath(folder) if os.path.isdir(folder) else model.source or model.name,
            identity=model.identity,
            loading=loading,
            offline=os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"),
            options=options or EngineOptions(),
            held=None if model.source else (model.model, model.tokenizer),
        )


@dataclass(frozen=True)
class Loaded:
    """The properties of a worker that has loaded the model."""

    identity: str
    token_budget: int
    device: str
    node: str
    process: int


@dataclass(frozen=True)
class Refusal:
    """An error of broca in a worker, as plain data: the worker is not at fault."""

    kind: str
    message: str
    request: int = 0

    @classmethod
    def of(cls, error: BrocaError) -> Refusal:
        """Converts an error to plain data."""
        return cls(type(error).__name__, str(error), getattr(error, "request", 0))

    def error(self) -> BrocaError:
        """Returns the error."""
        if self.kind == BadLogits.__name__:
            return BadLogits(self.message, request=self.request)
        kinds = {kind.__name__: kind for kind in all_errors()}
        return kinds.get(self.kind, BrocaError)(self.message)


class Worker:
    """Loads the model and answers questions, one batch of rows after another.

    Args:
        spec: The model to load.
        held: The transformers model and its tokenizer, if the driver sends them.
    """

    def __init__(self, spec: WorkerSpec, held: tuple[Any, Any] | None = None) -> None:
        self._spec = spec
        self._held = held
        self._model: GatedModel
        self._engines: dict[str, Engine] = {}

    def load(self) -> Loaded | Refusal:
        """Loads the model."""
        spec = self._spec
        tune_process()
        torch.set_num_threads(spec.threads)
        if spec.offline:
            go_offline()
        try:
            if self._held is not None:
                model, tokenizer = self._held
                device = spec.loading.device or ("cuda" if torch.cuda.is_available() else "cpu")
                self._model = GatedModel.wrap(
                    model.to(device), tokenizer, name=spec.model, components=spec.loading.components
                )
            else:
                self._model = load(spec.model, **asdict(spec.loading))
        except BrocaError as error:
            return Refusal.of(error)
        engine = self._engine(Setting())
        return Loaded(
            self._model.identity,
            engine.token_budget,
            self._model.device.type,
            platform.node(),
            os.getpid(),
        )

    def answer(self, job: Job, setting: Setting) -> tuple[Answers | Refusal, int]:
        """Returns the answers, and their number of tokens."""
        engine = self._engine(setting)
        before = engine.tokens
        delta = setting.delta
        reply: Answers | Refusal
        try:
            with nullcontext() if delta is None else delta.applied(self._model):
                reply = answer(engine, job)
        except BrocaError as error:
            reply = Refusal.of(error)
        return reply, engine.tokens - before

    def _engine(self, setting: Setting) -> Engine:
        """Returns the engine of a setting; all engines share the model."""
        if setting.key not in self._engines:
            donors: dict[GatePoint, torch.Tensor] = {}
            if setting.donors:
                donors = {
                    point: values.to(self._model.device)
                    for point, values in zip(self._model.points, setting.donors, strict=True)
                }
            self._engines[setting.key] = Engine(self._model, self._spec.options, donors=donors)
        return self._engines[setting.key]
