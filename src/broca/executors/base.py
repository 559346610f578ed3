"""What an executor is: something that answers plans."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Measurement, Plan
from broca.tasks import Output, Request


class Executor(Protocol):
    """Measures rows."""

    def run(self, plan: Plan) -> Measurement:
        """Measures every row of a plan, in its order."""

    def answers(self, plan: Plan) -> list[tuple[Output, ...]]:
        """What the model answers in every row of a plan, to its item's own requests."""


@runtime_checkable
class StreamingExecutor(Executor, Protocol):
    """Measures several plans at a time and hands them over as they come."""

    def stream(self, plans: Sequence[Plan]) -> Generator[tuple[int, Measurement], None, None]:
        """The position of every plan with its measurement, in no particular order."""

    def stream_answers(
        self, plans: Sequence[Plan]
    ) -> Generator[tuple[int, list[tuple[Output, ...]]], None, None]:
        """The position of every plan with its answers, in no particular order."""


class Answerer(Protocol):
    """Answers requests: an engine, or workers that have one each."""

    @property
    def tokens(self) -> int:
        """Tokens that were read or written so far."""

    @property
    def token_budget(self) -> int:
        """Most tokens of a batch."""

    def run(
        self,
        requests: Sequence[Request],
        gates: NDArray[np.float32],
        gate_index: NDArray[np.intp],
        donor_index: NDArray[np.intp] | None = None,
    ) -> list[Output]:
        """Answers every request under its gates, in the order of the requests."""
