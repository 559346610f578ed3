"""Repeats the paper's tables and figures on any model and its tasks, beside the published figures.

The names are at hand at once, for `broca reproduce --help`; the rest is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from broca.reproduce.names import ALL, NAMES

if TYPE_CHECKING:
    from broca.reproduce.record import Reproduction, Row, as_csv, as_json
    from broca.reproduce.running import reproduce
    from broca.reproduce.study import Settings, Study
    from broca.reproduce.writing import write

_HOME = {
    "Reproduction": "record",
    "Row": "record",
    "Settings": "study",
    "Study": "study",
    "as_csv": "record",
    "as_json": "record",
    "reproduce": "running",
    "write": "writing",
}

__all__ = [
    "ALL",
    "NAMES",
    "Reproduction",
    "Row",
    "Settings",
    "Study",
    "as_csv",
    "as_json",
    "reproduce",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'broca.reproduce' has no attribute '{name}'")
    return getattr(import_module(f"broca.reproduce.{_HOME[name]}"), name)
