"""Plans and measurements: the rows to measure, and their responses. NumPy only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

Response = Literal["accuracy", "margin", "probability", "match"]
"""The response of a row: `accuracy` is the task's own metric; the others are continuous, see
`broca.tasks.items`."""

GRADIENT_ROW = 3
"""Price, in rows, of a row with its gradient: measured at 2.1 to 3.2 (experiments/LOG.md)."""


@dataclass(frozen=True)
class Plan:
    """Rows to measure: pairs of a mask and an item.

    Attributes:
        masks: True where a component is ablated, `(masks, components)`.
        mask_index: Mask of every row, `(rows,)`.
        item_index: Item of every row, a position in the item bank of the run, `(rows,)`.
        gradients: Whether to return also the gradient of every row's response.
        response: Response of the rows; None for the executor's default.
        scale: Gate of the ablated components; None for the scale of the run, 0 by default.

    Raises:
        ValueError: The shapes do not fit together, an index is out of range, the scale is 1, or
            the response is unknown.
    """

    masks: Bools
    mask_index: Ints
    item_index: Ints
    gradients: bool = False
    response: Response | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        if self.masks.ndim != 2 or self.masks.dtype != bool:
            raise ValueError("masks must be a boolean matrix (masks, components)")
        if self.mask_index.shape != self.item_index.shape or self.mask_index.ndim != 1:
            raise ValueError("mask_index and item_index must be vectors of equal length")
        if len(self) and not 0 <= self.mask_index.min() <= self.mask_index.max() < len(self.masks):
            raise ValueError("mask_index points outside the masks")
        if self.scale is not None and (not np.isfinite(self.scale) or self.scale == 1):
            raise ValueError("the scale of a mask's gates must be a number other than 1")
        if self.response not in (None, *get_args(Response)):
            raise ValueError(f"the response {self.response!r} is none of {get_args(Response)}")

    def __len__(self) -> int:
        return len(self.mask_index)

    @property
    def cost(self) -> int:
        """Cost of the plan in rows."""
        return len(self) * (GRADIENT_ROW if self.gradients else 1)

    def part(self, rows: Bools | Ints) -> Plan:
        """Returns some rows of the plan, with their masks."""
        used, mask_index = np.unique(self.mask_index[rows], return_inverse=True)
        masks, mask_index = self.masks[used], mask_index.astype(np.intp)
        items = self.item_index[rows]
        return replace(self, masks=masks, mask_index=mask_index, item_index=items)

    @classmethod
    def crossed(cls, masks: Bools, items: Ints, *, response: Response | None = None) -> Plan:
        """Returns the plan of every mask on every item: `masks x items` rows, mask by mask."""
        mask_index = np.repeat(np.arange(len(masks)), len(items))
        item_index = np.tile(np.asarray(items, dtype=np.intp), len(masks))
        return cls(masks, mask_index, item_index, response=response)


@dataclass(frozen=True)
class Measurement:
    """The responses to a plan's rows.

    Attributes:
        plan: The plan that was measured.
        responses: One response for every row, `(rows,)`; higher is better.
        gradients: Gradient of every response with respect to its row's gates, `(rows, components)`;
            None if the plan did not request gradients.
        outputs: The model's answers to every row's requests, if the executor was set to return
            them.
    """

    plan: Plan
    responses: Floats
    gradients: NDArray[np.float32] | None = None
    outputs: tuple[Any, ...] | None = None

    def slopes(self) -> NDArray[np.float32]:
        """The gradients of a plan that requested them, `(rows, components)`.

        Raises:
            ValueError: The executor returned no gradients.
        """
        if self.gradients is None:
            raise ValueError("the executor returned no gradients")
        return self.gradients

    def mask_means(self) -> Floats:
        """Mean response under every mask of the plan, `(masks,)`; NaN for a mask without rows."""
        index, masks = self.plan.mask_index, len(self.plan.masks)
        count = np.bincount(index, minlength=masks)
        total = np.bincount(index, weights=self.responses, minlength=masks)
        with np.errstate(invalid="ignore"):
            return total / count


Execute = Callable[[Plan], Measurement]
"""Measures the rows of a plan."""


class Observation(Protocol):
    """A vector that is read from a model other than the response of a row.

    The integrated gradients of an item and a patched forward pass are observations. An observation
    is plain data, so that another process can measure it. The journal keeps its vector.
    """

    @property
    def kind(self) -> str:
        """Kind of the observation, in a word or two, for the reader."""

    @property
    def key(self) -> str:
        """Everything that determines the vector besides weights, number format and tokenizer."""

    @property
    def length(self) -> int:
        """Approximate number of tokens, by which observations are cut into batches."""

    @classmethod
    def observe(cls, engine: Any, observations: Sequence[Self]) -> list[NDArray[np.float32]]:
        """Measures observations with an engine; returns one vector for each, in their order."""
