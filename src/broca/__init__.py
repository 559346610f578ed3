"""broca finds which parts of a language model a capability needs, from what is lost without them.

The public names are loaded on first use, so that `import broca` and `broca --help` are quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broca.components import Component, ComponentSet
    from broca.errors import BrocaError
    from broca.models import GatedModel, load
    from broca.results.atlas import Atlas
    from broca.results.localization import Localization
    from broca.results.verification import Verification
    from broca.tasks import Task, TaskOptions
    from broca.verbs.atlas import atlas, save_atlas
    from broca.verbs.localize import localize, save
    from broca.verbs.verify import verify

_HOME = {
    "Atlas": "broca.results.atlas",
    "BrocaError": "broca.errors",
    "Component": "broca.components",
    "ComponentSet": "broca.components",
    "Verification": "broca.results.verification",
    "GatedModel": "broca.models",
    "Localization": "broca.results.localization",
    "Task": "broca.tasks",
    "TaskOptions": "broca.tasks",
    "atlas": "broca.verbs.atlas",
    "load": "broca.models",
    "localize": "broca.verbs.localize",
    "save": "broca.verbs.localize",
    "save_atlas": "broca.verbs.atlas",
    "verify": "broca.verbs.verify",
}

__all__ = [
    "Atlas",
    "BrocaError",
    "Component",
    "ComponentSet",
    "Verification",
    "GatedModel",
    "Localization",
    "Task",
    "TaskOptions",
    "atlas",
    "load",
    "localize",
    "save",
    "save_atlas",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'broca' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
