"""The protocol of executors, which measure plans and observations."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from broca.measurement import Measurement, Observation, Plan
from broca.tasks import Output


class WeightDelta(Protocol):
    """Changed weights of a model, such as those of trained neurons."""

    @property
    def digest(self) -> str:
        """Digest of the changes."""

    def applied(self, model: Any) -> AbstractContextManager[None]:
        """A context in which the weights of a `GatedModel` are changed; they are restored."""


@dataclass(frozen=True, eq=False)
class Setting:
    """The setting of an engine besides its model.

    Attributes:
        key: Equal keys mean equal settings.
        donors: Replacements of ablated activations, in the order of the model's gate points.
        delta: Changed weights.
    """

    key: str = ""
    donors: tuple[Tensor, ...] = field(default=(), repr=False)
    delta: WeightDelta | None = None


class Runner(Protocol):
    """What runs the requests of an executor: an engine, or a pool of workers."""

    @property
    def tokens(self) -> int:
        """Number of tokens that were read or generated so far."""

    @property
    def token_budget(self) -> int:
        """Maximum number of tokens of a batch."""

    @property
    def device(self) -> str:
        """The kind of device that the model runs on, such as `cpu`."""


class Executor(Protocol):
    """Measures rows and observations in this process or in workers."""

    @property
    def concurrent(self) -> bool:
        """Whether several plans are measured at the same time."""

    @property
    def runner(self) -> Runner:
        """What runs the requests."""

    def stream(self, plans: Sequence[Plan]) -> Generator[tuple[int, Measurement], None, None]:
        """Yields the position of every plan with its measurement, in no particular order."""

    def stream_answers(
        self, plans: Sequence[Plan]
    ) -> Generator[tuple[int, list[tuple[Output, ...]]], None, None]:
        """Yields the position of every plan with its answers, in no particular order."""

    def stream_observations(
        self, batches: Sequence[Sequence[Observation]]
    ) -> Generator[tuple[int, list[NDArray[np.float32]]], None, None]:
        """Yields the position of every batch with its vectors, in no particular order."""
