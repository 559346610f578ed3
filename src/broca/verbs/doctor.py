"""`doctor`: what this machine offers to broca, what is missing, and the line that mends it."""

from __future__ import annotations

from broca.runs import machine
from broca.runs.machine import Diagnosis


def doctor() -> Diagnosis:
    """Looks at everything that broca needs or can use on this machine; nothing is changed.

    The network is not asked. A shipped model is loaded, and its gates are tested.

    Returns:
        Every check, with the line that mends what is missing.
    """
    return machine.examine()
