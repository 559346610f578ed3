"""The hosts that make runners: this process, or workers of Ray."""

from typing import Protocol

from broca.engine import Engine, RunnerSpec
from broca.errors import BadInput
from broca.executors.executor import Runner
from broca.executors.ray import RayHost
from broca.options import ExecutorOptions


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


class LocalHost:
    """Makes engines of this process."""

    def runner(self, spec: RunnerSpec) -> Engine:
        """Makes an engine."""
        return spec.engine()

    def close(self) -> None:
        """Does nothing: nothing was started."""


def open_host(options: ExecutorOptions) -> Host:
    """Makes the host of the options.

    Raises:
        BadInput: An option needs workers of Ray.
        MissingExtra: Ray is not installed.
    """
    if options.executor == "ray":
        return RayHost(options)
    for name in ("address", "workers", "gpus_per_worker"):
        if getattr(options, name) is not None:
            raise BadInput(f"`{name}` needs `executor` ray")
    return LocalHost()
