"""Units of work of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from torch import Tensor

from broca.models import GatePoint, Replacement
from broca.tasks.items import Output, Request


@dataclass(frozen=True)
class Reading:
    """A sequence to read under a mask, and the targets at its last positions.

    Attributes:
        mask: Row of the gates.
        donor: Row of the replacement activations.
        tokens: Input tokens: context and continuation without its last token.
        targets: Position of each request, and the continuation that its last tokens predict.
    """

    mask: int
    donor: int
    tokens: tuple[int, ...]
    targets: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Number of tokens in a batch."""
        return len(self.tokens)

    @property
    def sharable(self) -> int:
        """First tokens whose logits are not needed."""
        return len(self.tokens) - max(len(target) for _, target in self.targets)


@dataclass(frozen=True)
class Decoding:
    """A generation under a mask.

    Attributes:
        mask: Row of the gates.
        donor: Row of the replacement activations.
        position: Position of its request.
        request: The request.
    """

    mask: int
    donor: int
    position: int
    request: Request

    @property
    def tokens(self) -> tuple[int, ...]:
        """Tokens of the prompt."""
        return self.request.context

    @property
    def length(self) -> int:
        """Maximum number of tokens in a batch."""
        return len(self.request.context) + self.request.max_new_tokens

    @property
    def sharable(self) -> int:
        """First tokens whose logits are not needed."""
        return len(self.tokens) - 1


Work = Reading | Decoding
W = TypeVar("W", bound=Work)
Store = Callable[[Sequence[tuple[int, Output]]], None]
"""Receives answers: position of the request, and its answer."""


@dataclass(frozen=True)
class Masking:
    """Gates of every mask and the activations that replace ablated ones.

    Attributes:
        gates: Gates, `(masks, components)`.
        donors: Donors of each gate point, `(donors, width)`; empty for zero ablation.
    """

    gates: Tensor
    donors: dict[GatePoint, Tensor]

    def of(self, work: Sequence[Work]) -> tuple[Tensor, Replacement]:
        """Returns gates `(rows, components)` and replacements `(rows, width)` of some work."""
        rows = [row.donor for row in work]
        return (
            self.gates[[row.mask for row in work]],
            {point: values[rows] for point, values in self.donors.items()},
        )


def longest_first(work: Sequence[W]) -> list[W]:
    """Returns the work by decreasing length: batches have little padding, memory peaks early."""
    return sorted(work, key=lambda row: row.length, reverse=True)
