"""Runs programs that a model wrote, enclosed, and says whether they came to their end."""

from broca.tasks.sandbox.isolation import ISOLATIONS, Isolation, Limits
from broca.tasks.sandbox.runner import Sandbox, Verdict

__all__ = ["ISOLATIONS", "Isolation", "Limits", "Sandbox", "Verdict"]
