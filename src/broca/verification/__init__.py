"""Verification of a selection, on items that the search did not use."""

from broca.results.verification import TaskDrop
from broca.verification.evidence import QUICK, Evidence, Scope
from broca.verification.examiner import (
    Examiner,
    control_rows,
    crossings_of,
    fixed_rows,
    plain_verification,
)
from broca.verification.trial import Trial, roles

__all__ = [
    "QUICK",
    "Evidence",
    "Examiner",
    "Scope",
    "TaskDrop",
    "Trial",
    "control_rows",
    "crossings_of",
    "fixed_rows",
    "plain_verification",
    "roles",
]
