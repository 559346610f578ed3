"""Where the engine runs: this process."""

from broca.executors.local import LocalExecutor

__all__ = ["LocalExecutor"]
