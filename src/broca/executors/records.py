"""The record of an executor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

from broca.engine import EngineOptions, Progress
from broca.errors import BadInput, nearest
from broca.executors.asking import Asker
from broca.executors.base import Executor, Setting
from broca.models import GatedModel
from broca.options import ExecutorOptions, ModelOptions
from broca.plugins import Plugins


@dataclass(frozen=True, kw_only=True, eq=False)
class ExecutorSpec:
    """What an executor is made of.

    Attributes:
        model: The model of this process.
        asker: Turns plans into questions, and answers into responses.
        setting: Setting of the engine besides the model.
        engine_options: Options of the engine.
        model_options: How other processes load the model.
        on_progress: Called after every batch.
    """

    model: GatedModel
    asker: Asker
    setting: Setting
    engine_options: EngineOptions | None
    model_options: ModelOptions
    on_progress: Callable[[Progress], None]


class Host(Protocol):
    """Makes executors for any number of runs, and stops the workers that it started."""

    def executor(self, spec: ExecutorSpec) -> Executor:
        """Makes an executor.

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


def executors() -> Plugins[ExecutorKind]:
    """Returns every executor by name, including those of other packages."""
    from broca.executors.local import LOCAL
    from broca.executors.ray import RAY

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
    for field in fields(options):
        if field.default is None and getattr(options, field.name) is not None:
            takers = [name for name, kind in kinds.items() if field.name in kind.takes]
            if chosen[0].name not in takers:
                raise BadInput(f"`{field.name}` needs `executor` {' or '.join(takers)}")
    return chosen[0].open(options)
