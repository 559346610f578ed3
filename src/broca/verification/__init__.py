"""Verification of a selection, on items that the search did not use."""

from broca.verification.evidence import Evidence as Evidence
from broca.verification.evidence import Scope as Scope
from broca.verification.examiner import Examiner as Examiner
from broca.verification.examiner import fitting as fitting
from broca.verification.examiner import most_rows as most_rows
from broca.verification.examiner import plain_verification as plain_verification
from broca.verification.trial import Trial as Trial
from broca.verification.trial import roles as roles
