"""Feed-forward neurons that the items of a data set share.

A namespace of functions, which are loaded on first use.
"""

from importlib import import_module
from typing import Any

__all__ = ["erase", "locate"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'broca.neurons' has no attribute '{name}'")
    return getattr(import_module("broca.verbs.neurons"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
