"""broca finds which parts of a language model a capability needs, from what is lost without them.

The public names are loaded on first use, so that `import broca` and `broca --help` are quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broca.api import localize, save
    from broca.charted import Atlas
    from broca.charting import atlas, save_atlas
    from broca.components import Component, ComponentSet
    from broca.errors import BrocaError
    from broca.evidence import Evidence
    from broca.models import GatedModel, load
    from broca.result import Result
    from broca.tasks import TaskOptions
    from broca.verifying import verify_heads

_HOME = {
    "Atlas": "broca.charted",
    "BrocaError": "broca.errors",
    "Component": "broca.components",
    "ComponentSet": "broca.components",
    "Evidence": "broca.evidence",
    "GatedModel": "broca.models",
    "Result": "broca.result",
    "TaskOptions": "broca.tasks",
    "atlas": "broca.charting",
    "load": "broca.models",
    "localize": "broca.api",
    "save": "broca.api",
    "save_atlas": "broca.charting",
    "verify_heads": "broca.verifying",
}

__all__ = [
    "Atlas",
    "BrocaError",
    "Component",
    "ComponentSet",
    "Evidence",
    "GatedModel",
    "Result",
    "TaskOptions",
    "atlas",
    "load",
    "localize",
    "save",
    "save_atlas",
    "verify_heads",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'broca' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
