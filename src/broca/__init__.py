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
    from broca.results.claim import Claim as Claim
    from broca.results.claim import Replication as Replication
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
    from broca.studies.reproduction import reproduce as reproduce
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
    from broca.verbs.replicate import replicate as replicate
    from broca.verbs.rerun import rerun as rerun
    from broca.verbs.scan import scan as scan
    from broca.verbs.stress import stress as stress
    from broca.verbs.tasks import describe_task as describe_task
    from broca.verbs.tasks import list_tasks as list_tasks
    from broca.verbs.verify import verify as verify
    from broca.verification import Scope as Scope

_HOME = {
    name: f"broca.{module}"
    for module, names in {
        "components": "Component ComponentSet",
        "errors": "BrocaError",
        "models": "GatedModel load",
        "options": "EngineOptions ExecutorOptions TaskOptions",
        "published": "published_lists",
        "results.atlas": "Atlas",
        "results.checks": "Diagnosis Scan",
        "results.claim": "Claim Replication",
        "results.comparison": "Comparison",
        "results.export": "Export",
        "results.localization": "Localization Refit",
        "results.reading": "read",
        "results.runs": "JournalContents Repetition",
        "results.stress_test": "StressTest",
        "results.tasks": "TaskDescription TaskList",
        "results.verification": "Verification",
        "runs.run": "Run",
        "runs.workspace": "Workspace",
        "studies.reproduction": "reproduce",
        "tasks": "Task",
        "verbs.atlas": "atlas",
        "verbs.chat": "chat",
        "verbs.compare": "compare",
        "verbs.doctor": "doctor",
        "verbs.explore": "explore",
        "verbs.export": "export",
        "verbs.inspect_journal": "inspect_journal",
        "verbs.localize": "localize",
        "verbs.pages": "report view",
        "verbs.plan": "plan",
        "verbs.refit": "refit",
        "verbs.replicate": "replicate",
        "verbs.rerun": "rerun",
        "verbs.scan": "scan",
        "verbs.stress": "stress",
        "verbs.tasks": "describe_task list_tasks",
        "verbs.verify": "verify",
        "verification": "Scope",
    }.items()
    for name in names.split()
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
