"""What an executor is: something that answers plans."""

from __future__ import annotations

from typing import Protocol

from broca.plan import Measurement, Plan
from broca.tasks import Output


class Executor(Protocol):
    """Measures rows."""

    def run(self, plan: Plan) -> Measurement:
        """Measures every row of a plan, in its order."""

    def answers(self, plan: Plan) -> list[tuple[Output, ...]]:
        """What the model answers in every row of a plan, to its item's own requests."""
