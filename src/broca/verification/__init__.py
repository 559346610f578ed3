"""Verification of a selection, on items that the search did not use."""

from broca.verification.evidence import QUICK, Evidence, Scope
from broca.verification.examiner import Examiner, most_rows, plain_verification
from broca.verification.trial import Trial, roles

__all__ = [
    "QUICK",
    "Evidence",
    "Examiner",
    "Scope",
    "Trial",
    "most_rows",
    "plain_verification",
    "roles",
]
