"""Repeats the paper's tables and figures on any model and tasks, beside the published figures.

The names are loaded at once, for `broca reproduce --help`; the rest is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from broca.studies.paper.names import ALL, NAMES

if TYPE_CHECKING:
    from broca.results import Reproduction
    from broca.studies.paper.reproduction import Row, as_csv, as_json
    from broca.studies.paper.running import reproduce
    from broca.studies.paper.study import Study, StudySettings
    from broca.studies.paper.writing import write

_HOME = {
    "Reproduction": "reproduction",
    "Row": "reproduction",
    "Study": "study",
    "StudySettings": "study",
    "as_csv": "reproduction",
    "as_json": "reproduction",
    "reproduce": "running",
    "write": "writing",
}

__all__ = [
    "ALL",
    "NAMES",
    "Reproduction",
    "Row",
    "Study",
    "StudySettings",
    "as_csv",
    "as_json",
    "reproduce",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'broca.studies.paper' has no attribute '{name}'")
    return getattr(import_module(f"broca.studies.paper.{_HOME[name]}"), name)
