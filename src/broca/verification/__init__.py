"""Verification of a selection, on items that the search did not use."""

from broca.verification.drops import MeasuredDrop
from broca.verification.examine import QUICK, Examination, Examiner, Scope
from broca.verification.trial import Trial, roles

__all__ = [
    "QUICK",
    "Examination",
    "Examiner",
    "MeasuredDrop",
    "Scope",
    "Trial",
    "roles",
]
