"""What several runs share: an open journal, workers, built tasks, and how Ctrl+C ends them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from broca.engine import EngineOptions
from broca.errors import BadInput
from broca.executors.ray import RayOptions, RayPool, require_ray
from broca.executors.workers import WorkerSpec
from broca.journal import Journal
from broca.models import GatedModel
from broca.options import ExecutorOptions, ModelOptions, SourceOptions
from broca.runs.interrupts import Stopper
from broca.tasks import Catalog


class Workspace:
    """What several runs share.

    Args:
        journal: The journal's file; in memory alone if None, where nothing can be resumed.
        executor: Where rows are measured: in this process by default.
        keep_outputs: Share of the rows whose raw output is kept.
        stopper: Puts off Ctrl+C until rows are kept.
        on_begin: Receives the digests of every run, once they are known.

    Raises:
        BadInput: A share that does not lie between 0 and 1, or an unknown executor.
        MissingExtra: Ray is wanted and not installed.
    """

    def __init__(
        self,
        journal: str | Path | None = None,
        *,
        executor: ExecutorOptions | None = None,
        keep_outputs: float = 0.0,
        stopper: Stopper | None = None,
        on_begin: Callable[[dict[str, Any]], None] = lambda digests: None,
    ) -> None:
        if not 0 <= keep_outputs <= 1:
            raise BadInput(f"`keep_outputs` must lie between 0 and 1, not at {keep_outputs:g}")
        self.ray = ray_options(executor or ExecutorOptions())
        self.path = journal
        self.keep_outputs = keep_outputs
        self.stopper = stopper
        self.on_begin = on_begin
        self._opened = ExitStack()
        self._journal: Journal | None = None
        self._pools: dict[tuple[str, str, EngineOptions], RayPool] = {}
        self._catalogs: dict[SourceOptions, Catalog] = {}

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the journal and ends the workers."""
        self._opened.close()
        self._journal = None
        self._pools = {}

    @property
    def in_memory(self) -> bool:
        """Whether what is measured is gone when the process ends."""
        return self.path is None

    @property
    def journal(self) -> Journal:
        """The journal, opened on first use.

        Raises:
            JournalError: It cannot be used.
        """
        if self._journal is None:
            self._journal = self._opened.enter_context(
                Journal.in_memory() if self.path is None else Journal(self.path)
            )
        return self._journal

    def catalog(self, options: SourceOptions) -> Catalog:
        """The tasks that can be named; a task that several runs ask is built once."""
        if options not in self._catalogs:
            self._catalogs[options] = Catalog(options.include_path, allow_code=options.allow_code)
        return self._catalogs[options]

    def pool(
        self, model: GatedModel, options: EngineOptions | None, loading: ModelOptions
    ) -> RayPool:
        """The workers that have a model, started on first use.

        Args:
            model: The driver's model.
            options: Of the workers' engines.
            loading: How workers load the model.

        Raises:
            BadInput: The cluster has no room, or the model cannot be sent to workers.
            ExecutorFailed: No worker could be started.
        """
        key = (model.fingerprint, model.kinds, options or EngineOptions())
        if key not in self._pools:
            spec = WorkerSpec.of(
                model,
                options=options,
                device_map=loading.device_map,
                allow_pickle=loading.allow_pickle,
            )
            self._pools[key] = self._opened.enter_context(RayPool(spec, self.ray or RayOptions()))
        return self._pools[key]


def ray_options(options: ExecutorOptions) -> RayOptions | None:
    """Where the workers of Ray run; None where this process measures.

    Raises:
        BadInput: An unknown executor.
        MissingExtra: Ray is wanted and not installed.
    """
    executor: Any = options.executor
    if isinstance(executor, RayOptions):
        require_ray()
        return executor
    if executor == "local":
        return None
    if executor != "ray":
        raise BadInput(f"`executor` '{executor}' is unknown: use local or ray")
    require_ray()
    return RayOptions(
        address=options.address,
        workers=options.workers,
        gpus_per_worker=options.gpus_per_worker,
        batch_limit_s=options.batch_limit,
    )
