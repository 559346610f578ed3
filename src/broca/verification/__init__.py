"""The proof of a selection, on items that the search never saw."""

from broca.verification.examine import QUICK, Examination, Examiner, Scope
from broca.verification.proof import Proof, prove
from broca.verification.trial import Remembered, Trial, roles

__all__ = [
    "QUICK",
    "Examination",
    "Examiner",
    "Proof",
    "Remembered",
    "Scope",
    "Trial",
    "prove",
    "roles",
]
