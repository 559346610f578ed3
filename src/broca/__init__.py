"""broca finds which parts of a language model a capability needs, by ablating them.

The public names are loaded on first use, so that `import broca` and `broca --help` are quick. Type
checkers read them in the stub beside this file.
"""

import sys
from importlib import import_module
from typing import Any

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
        "verbs.pages": "report view",
        "verbs.tasks": "describe_task list_tasks",
        "verification": "Scope",
    }.items()
    for name in names.split()
}
_HOME |= {
    name: f"broca.verbs.{name}"
    for name in (
        "atlas", "chat", "compare", "doctor", "explore", "export", "inspect_journal", "localize",
        "plan", "refit", "replicate", "rerun", "scan", "stress", "verify",
    )
}  # fmt: skip
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
