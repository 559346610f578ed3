"""broca finds which parts of a language model a capability needs, by ablating them.

The public names are loaded on first use, so that `import broca` and `broca --help` are quick.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broca.components import Component as Component
    from broca.components import ComponentSet as ComponentSet
    from broca.errors import BrocaError as BrocaError
    from broca.models import GatedModel as GatedModel
    from broca.models import load as load
    from broca.options import EngineOptions as EngineOptions
    from broca.options import ExecutorOptions as ExecutorOptions
    from broca.options import TaskOptions as TaskOptions
    from broca.published import published_lists as published_lists
    from broca.results.atlas import Atlas as Atlas
    from broca.results.checks import Diagnosis as Diagnosis
    from broca.results.checks import Scan as Scan
    from broca.results.comparison import Comparison as Comparison
    from broca.results.export import Export as Export
    from broca.results.localization import Localization as Localization
    from broca.results.localization import Refit as Refit
    from broca.results.reading import read as read
    from broca.results.runs import JournalContents as JournalContents
    from broca.results.runs import Repetition as Repetition
    from broca.results.stress_test import StressTest as StressTest
    from broca.results.tasks import TaskDescription as TaskDescription
    from broca.results.tasks import TaskList as TaskList
    from broca.results.verification import Verification as Verification
    from broca.runs.run import Run as Run
    from broca.runs.workspace import Workspace as Workspace
    from broca.studies.paper.reproduction import reproduce as reproduce
    from broca.tasks import Task as Task
    from broca.verbs.atlas import atlas as atlas
    from broca.verbs.chat import chat as chat
    from broca.verbs.compare import compare as compare
    from broca.verbs.doctor import doctor as doctor
    from broca.verbs.explore import explore as explore
    from broca.verbs.export import export as export
    from broca.verbs.inspect_journal import inspect_journal as inspect_journal
    from broca.verbs.localize import localize as localize
    from broca.verbs.pages import report as report
    from broca.verbs.pages import view as view
    from broca.verbs.plan import plan as plan
    from broca.verbs.refit import refit as refit
    from broca.verbs.rerun import rerun as rerun
    from broca.verbs.scan import scan as scan
    from broca.verbs.stress import stress as stress
    from broca.verbs.tasks import describe_task as describe_task
    from broca.verbs.tasks import list_tasks as list_tasks
    from broca.verbs.verify import verify as verify
    from broca.verification import Scope as Scope

_HOME = {
    "Atlas": "broca.results.atlas",
    "BrocaError": "broca.errors",
    "Comparison": "broca.results.comparison",
    "Component": "broca.components",
    "ComponentSet": "broca.components",
    "Diagnosis": "broca.results.checks",
    "EngineOptions": "broca.options",
    "Export": "broca.results.export",
    "ExecutorOptions": "broca.options",
    "GatedModel": "broca.models",
    "JournalContents": "broca.results.runs",
    "Localization": "broca.results.localization",
    "Refit": "broca.results.localization",
    "Repetition": "broca.results.runs",
    "Run": "broca.runs.run",
    "Scan": "broca.results.checks",
    "Scope": "broca.verification",
    "StressTest": "broca.results.stress_test",
    "Task": "broca.tasks",
    "TaskDescription": "broca.results.tasks",
    "TaskList": "broca.results.tasks",
    "TaskOptions": "broca.options",
    "Verification": "broca.results.verification",
    "Workspace": "broca.runs.workspace",
    "atlas": "broca.verbs.atlas",
    "chat": "broca.verbs.chat",
    "compare": "broca.verbs.compare",
    "describe_task": "broca.verbs.tasks",
    "doctor": "broca.verbs.doctor",
    "export": "broca.verbs.export",
    "explore": "broca.verbs.explore",
    "inspect_journal": "broca.verbs.inspect_journal",
    "list_tasks": "broca.verbs.tasks",
    "load": "broca.models",
    "localize": "broca.verbs.localize",
    "plan": "broca.verbs.plan",
    "published_lists": "broca.published",
    "read": "broca.results.reading",
    "reproduce": "broca.studies.paper.reproduction",
    "refit": "broca.verbs.refit",
    "report": "broca.verbs.pages",
    "rerun": "broca.verbs.rerun",
    "scan": "broca.verbs.scan",
    "stress": "broca.verbs.stress",
    "verify": "broca.verbs.verify",
    "view": "broca.verbs.pages",
}
"""Where each public name is defined."""

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name == "neurons":  # a namespace of functions
        return import_module("broca.neurons")
    if name not in _HOME:
        raise AttributeError(f"module 'broca' has no attribute '{name}'")
    if "torch" not in sys.modules:
        from broca.executors.process import spin_briefly

        spin_briefly()
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
