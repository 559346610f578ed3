"""The hosts that make runners: this process, or workers of Ray."""

from broca.engine import Engine, RunnerSpec
from broca.errors import BadInput
from broca.executors.ray import RayHost
from broca.options import ExecutorOptions


class LocalHost:
    """Makes engines of this process."""

    def runner(self, spec: RunnerSpec) -> Engine:
        """Makes an engine."""
        return spec.engine()

    def close(self) -> None:
        """Does nothing: nothing was started."""


def open_host(options: ExecutorOptions) -> LocalHost | RayHost:
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
