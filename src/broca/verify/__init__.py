"""The proof of a selection, on items that the search never saw."""

from broca.verify.examine import QUICK, Examination, Examiner, Scope
from broca.verify.proof import Proof, prove
from broca.verify.trial import Remembered, Trial, roles

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
