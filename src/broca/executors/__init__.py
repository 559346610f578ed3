"""Where the engine runs, and what it keeps."""

from broca.executors.asking import Asker
from broca.executors.base import Executor, StreamingExecutor
from broca.executors.journaled import JournaledExecutor, Recording
from broca.executors.local import LocalExecutor
from broca.executors.ray import RayExecutor, RayOptions, RayPool, require_ray
from broca.executors.references import Referenced, with_references
from broca.executors.workers import WorkerSpec

__all__ = [
    "Asker",
    "Executor",
    "JournaledExecutor",
    "LocalExecutor",
    "RayExecutor",
    "RayOptions",
    "RayPool",
    "Recording",
    "Referenced",
    "StreamingExecutor",
    "WorkerSpec",
    "require_ray",
    "with_references",
]
