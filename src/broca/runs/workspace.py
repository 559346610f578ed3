"""The journal, workers and built tasks that several runs share."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from broca.errors import BadInput
from broca.executors.ray import RayHost
from broca.known_paths import place_of
from broca.options import ExecutorOptions, SourceOptions
from broca.runs.interrupts import Stopper
from broca.store import Journal
from broca.tasks import Catalog


class Workspace(AbstractContextManager["Workspace"]):
    """A journal, workers and built tasks that several runs share.

    Args:
        journal: The journal's file; None keeps rows in memory, so that no run can be resumed.
        executor: Where rows are measured; in this process by default.
        keep_outputs: Share of the rows whose raw output is kept.
        stopper: Delays Ctrl+C until the measured rows are kept.
        on_begin: Receives the digests of every run, once they are known.

    Raises:
        BadInput: The share is not between 0 and 1, or nothing keeps it; or the executor is unknown.
        MissingExtra: Ray is requested and not installed.
    """

    def __init__(
        self,
        journal: str | Path | None = None,
        *,
        executor: ExecutorOptions | None = None,
        keep_outputs: float = 0.0,
        stopper: Stopper | None = None,
        on_begin: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        if not 0 <= keep_outputs <= (journal is not None):
            raise BadInput(
                "`keep_outputs` must be a share from 0 to 1, and 0 without a `journal` that keeps "
                f"them, not {keep_outputs:g}"
            )
        self.executor = executor or ExecutorOptions()
        self.ray = RayHost(self.executor) if self.executor.executor == "ray" else None
        for name in ("address", "workers", "gpus_per_worker") if self.ray is None else ():
            if getattr(self.executor, name) is not None:
                raise BadInput(f"`{name}` needs `executor` ray")
        self.path = None if journal is None else place_of(journal)
        self.keep_outputs = keep_outputs
        self.stopper = stopper or Stopper()
        self.on_begin = on_begin
        self._opened = ExitStack()
        if self.ray is not None:
            self._opened.callback(self.ray.close)
        self._journal: Journal | None = None
        self._catalogs: dict[SourceOptions, Catalog] = {}

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the journal and ends the workers."""
        self._opened.close()
        self._journal = None

    @property
    def journal(self) -> Journal:
        """The journal, opened on first use.

        Raises:
            JournalError: The journal cannot be used.
        """
        if self._journal is None:
            self._journal = self._opened.enter_context(
                Journal() if self.path is None else Journal(self.path)
            )
        return self._journal

    def catalog(self, options: SourceOptions) -> Catalog:
        """Returns the catalog of these options; a task of several runs is built once."""
        if options not in self._catalogs:
            self._catalogs[options] = Catalog(**asdict(options))
        return self._catalogs[options]
