"""A run: its set-up, its measuring, its folder.

The names that a study needs are public here. They are loaded on first use, so that a journal can be
read without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broca.engine import Progress as Progress
    from broca.runs.folder import JOURNAL as JOURNAL
    from broca.runs.forecast import Step as Step
    from broca.runs.progress import Report as Report
    from broca.runs.progress import Stages as Stages
    from broca.runs.progress import silent as silent
    from broca.runs.progress import usual_report as usual_report
    from broca.runs.run import Run as Run
    from broca.runs.setup import Session as Session
    from broca.runs.setup import open_session as open_session
    from broca.runs.setup import open_workspace as open_workspace
    from broca.runs.task_sets import TaskSet as TaskSet
    from broca.runs.task_sets import claim_tasks as claim_tasks
    from broca.runs.task_sets import listed as listed
    from broca.runs.task_sets import load_tasks as load_tasks
    from broca.runs.task_sets import other_tasks as other_tasks
    from broca.runs.task_sets import whole_tasks as whole_tasks
    from broca.runs.verb_steps import localization_steps as localization_steps
    from broca.runs.workspace import Workspace as Workspace

_NAMES = {
    "verb_steps": ("localization_steps",),
    "folder": ("JOURNAL",),
    "forecast": ("Step",),
    "progress": ("Progress", "Report", "Stages", "silent", "usual_report"),
    "run": ("Run",),
    "setup": ("Session", "open_session", "open_workspace"),
    "task_sets": (
        "TaskSet", "claim_tasks", "listed", "load_tasks", "other_tasks", "whole_tasks",
    ),
    "workspace": ("Workspace",),
}  # fmt: skip
"""The public names of each module."""

_HOME = {name: f"broca.runs.{module}" for module, names in _NAMES.items() for name in names}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'broca.runs' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
