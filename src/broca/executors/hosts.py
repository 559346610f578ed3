"""All executors by name, and the host that options ask for."""

from __future__ import annotations

from dataclasses import fields

from broca.errors import BadInput, nearest
from broca.executors.ray import RAY
from broca.executors.records import LOCAL, ExecutorKind, Host
from broca.options import ExecutorOptions
from broca.plugins import Plugins


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
