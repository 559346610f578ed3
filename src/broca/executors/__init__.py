"""Where the engine runs: this process; and what it keeps: everything, in a journal."""

from broca.executors.base import Executor
from broca.executors.journaled import JournaledExecutor, Recording
from broca.executors.local import LocalExecutor

__all__ = ["Executor", "JournaledExecutor", "LocalExecutor", "Recording"]
