"""Plans and measurements: the rows that are asked for, and what came back. NumPy only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Response = Literal["accuracy", "margin", "probability"]
"""What a row returns: `accuracy` is the task's own metric; the others are continuous, see
`broca.tasks.margins`."""


@dataclass(frozen=True)
class Plan:
    """Rows to measure: pairs of a mask and an item.

    Attributes:
        masks: True where a component is ablated, `(masks, components)`.
        mask_index: Mask of every row, `(rows,)`.
        item_index: Item of every row, a position in the item bank of the run, `(rows,)`.
        gradients: Whether to return the gradient of every row's response too.
        response: What the rows return; None for what the executor returns by default.
        scale: Gate of the ablated components; None for the run's own, which is 0 unless the user
            said otherwise.

    Raises:
        ValueError: The shapes do not fit together, an index is out of range, or the scale is 1.
    """

    masks: NDArray[np.bool_]
    mask_index: NDArray[np.intp]
    item_index: NDArray[np.intp]
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

    def __len__(self) -> int:
        return len(self.mask_index)

    @property
    def cost(self) -> int:
        """Rows that the plan counts for: a row with its gradient counts as three."""
        return len(self) * (3 if self.gradients else 1)

    @classmethod
    def crossed(
        cls, masks: NDArray[np.bool_], items: NDArray[np.intp], *, response: Response | None = None
    ) -> Plan:
        """Every mask on every item: `masks x items` rows, mask by mask."""
        return cls(
            masks,
            np.repeat(np.arange(len(masks)), len(items)),
            np.tile(np.asarray(items, dtype=np.intp), len(masks)),
            response=response,
        )


@dataclass(frozen=True)
class Measurement:
    """The responses to a plan's rows.

    Attributes:
        plan: What was asked.
        responses: One response for every row, `(rows,)`; higher is better.
        gradients: Of every response with respect to its row's gates, `(rows, components)`; None
            where they were not asked for.
        outputs: What the model answered to every row's requests, where an executor was told to
            hand it over.
    """

    plan: Plan
    responses: NDArray[np.float64]
    gradients: NDArray[np.float32] | None = None
    outputs: tuple[Any, ...] | None = None

    def slopes(self) -> NDArray[np.float32]:
        """The gradients of a plan that asked for them, `(rows, components)`.

        Raises:
            ValueError: They were not returned.
        """
        if self.gradients is None:
            raise ValueError("the executor returned no gradients")
        return self.gradients

    def mask_means(self) -> NDArray[np.float64]:
        """Mean response under every mask of the plan, `(masks,)`; NaN for one without rows."""
        count = np.bincount(self.plan.mask_index, minlength=len(self.plan.masks))
        total = np.bincount(
            self.plan.mask_index, weights=self.responses, minlength=len(self.plan.masks)
        )
        with np.errstate(invalid="ignore"):
            return total / count


Execute = Callable[[Plan], Measurement]
"""Measures the rows of a plan."""


class Observation(Protocol):
    """What is read from a model and is not a row of a mask and an item.

    The integrated gradients of an item and a patched forward pass are observations. An observation
    is plain data, so that another process can take it, and gives a vector, which the journal keeps.
    """

    @property
    def kind(self) -> str:
        """What is observed, in a word or two, for people."""

    @property
    def key(self) -> str:
        """All that decides the vector besides weights, number format and tokenizer."""

    @property
    def length(self) -> int:
        """Tokens that it takes, about: observations are cut into batches by it."""

    @classmethod
    def observe(cls, engine: Any, observations: Sequence[Self]) -> list[NDArray[np.float32]]:
        """Takes some observations with an engine; returns one vector for each, in their order."""
