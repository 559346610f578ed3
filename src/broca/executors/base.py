"""What an executor is: something that answers plans."""

from __future__ import annotations

from typing import Protocol

from broca.plan import Measurement, Plan


class Executor(Protocol):
    """Measures rows."""

    def run(self, plan: Plan) -> Measurement:
        """Measures every row of a plan, in its order."""
