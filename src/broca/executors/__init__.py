"""Executors: run the engine in this process, or in workers of a Ray cluster.

The names are loaded on first use: `broca --help` needs only `broca.executors.process`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broca.executors.asking import Asker as Asker
    from broca.executors.base import Executor as Executor
    from broca.executors.base import Setting as Setting
    from broca.executors.journaled import JournaledExecutor as JournaledExecutor
    from broca.executors.local import LocalExecutor as LocalExecutor
    from broca.executors.ray import RayExecutor as RayExecutor
    from broca.executors.ray import RayOptions as RayOptions
    from broca.executors.ray import RayPool as RayPool
    from broca.executors.ray import require_ray as require_ray
    from broca.executors.records import ExecutorKind as ExecutorKind
    from broca.executors.records import ExecutorSpec as ExecutorSpec
    from broca.executors.records import Host as Host
    from broca.executors.records import executors as executors
    from broca.executors.records import open_host as open_host
    from broca.executors.workers import WorkerSpec as WorkerSpec

_HOME = {
    "Asker": "asking",
    "Executor": "base",
    "ExecutorKind": "records",
    "ExecutorSpec": "records",
    "Host": "records",
    "JournaledExecutor": "journaled",
    "LocalExecutor": "local",
    "RayExecutor": "ray",
    "RayOptions": "ray",
    "RayPool": "ray",
    "Setting": "base",
    "WorkerSpec": "workers",
    "executors": "records",
    "open_host": "records",
    "require_ray": "ray",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'broca.executors' has no attribute '{name}'")
    return getattr(import_module(f"broca.executors.{_HOME[name]}"), name)
