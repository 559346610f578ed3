"""Runs programs that a model wrote in isolation, and reports whether they finished."""

from broca.tasks.sandbox.isolation import ISOLATIONS, Isolation, Limits
from broca.tasks.sandbox.runner import ProgramOutcome, Sandbox

__all__ = ["ISOLATIONS", "Isolation", "Limits", "Sandbox", "ProgramOutcome"]
