"""Executors by name, and the hosts that make their runners."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

from broca.engine import Engine, RunnerSpec
from broca.errors import BadInput, nearest
from broca.executors.executor import Runner
from broca.executors.ray import RayHost
from broca.options import ExecutorOptions
from broca.plugins import Plugins


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

RAY = ExecutorKind(
    name="ray",
    help="In workers of a Ray cluster, each with its own model; lost workers are replaced.",
    open=RayHost,
    takes=("address", "workers", "gpus_per_worker"),
)


def executors() -> Plugins[ExecutorKind]:
    """Returns every executor by name, including those of other packages."""
    return Plugins(ExecutorKind, LOCAL, RAY, group="broca.executors")


def open_host(options: ExecutorOptions) -> Host:
    """Makes the host of the options.

    Raises:
        BadInput: No executor has this name or these settings, or an option needs another executor.
        MissingExtra: The executor needs a package that is not installed.
    """
    kinds, named = executors(), options.executor
    chosen = [
        kind
        for name, kind in kinds.items()
        if name == named or (kind.settings is not None and isinstance(named, kind.settings))
    ]
    if not chosen:
        raise BadInput(
            f"`executor` '{named}' is unknown{nearest(str(named), kinds)}: use {' or '.join(kinds)}"
        )
    for option in fields(options):
        if option.default is None and getattr(options, option.name) is not None:
            takers = [name for name, kind in kinds.items() if option.name in kind.takes]
            if chosen[0].name not in takers:
                raise BadInput(f"`{option.name}` needs `executor` {' or '.join(takers)}")
    return chosen[0].open(options)
