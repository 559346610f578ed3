"""`doctor`: what broca can use on this machine, what is missing, and the command that fixes it."""

from __future__ import annotations

from broca.results.checks import Diagnosis
from broca.runs import machine


def doctor() -> Diagnosis:
    """Checks everything that broca needs or can use on this machine, without changing anything.

    It makes no network call. It loads a shipped model and tests its gates.

    Returns:
        Every check, with the command that fixes what is missing.
    """
    return machine.examine()
