"""Widening: what matters only beside others has no effect of its own by which to be screened.

Stand-ins act once those that they stand in for are gone, and a link of a chain that is cut already
costs nothing more. So the gates' gradients are taken where a promising set is ablated: one row
rates every component by what it adds to that set.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Measurement, Plan
from broca.searches.measuring import Bools, Floats, Measuring
from broca.searches.pilot import random_masks

ROW = 3
"""What a row with its gradient counts for."""

_ITEMS = 8
"""Most items of the task, and of the others, for each set."""
_EXTRA = 0.05
"""Share of the components that are ablated besides: saturated answers move."""
_CLIPPED = 0.98
"""Quantile of a component's slopes beyond which they are clipped: a few are huge."""


@dataclass(frozen=True)
class Beside:
    """What components add to sets, by gradients.

    Attributes:
        sets: Masks of the sets, `(sets, components)`.
        adds: What each component costs the task beyond the others when its gate closes beside each
            set, or what it costs there if it is one of the set, `(sets, components)`.
        errors: Their standard errors, `(sets, components)`.
        open: Components that were not ablated in the rows of each set, `(sets, components)`.
    """

    sets: Bools
    adds: Floats
    errors: Floats
    open: Bools

    def newcomers(self, known: NDArray[np.intp], most: int) -> NDArray[np.intp]:
        """Components that add most: to all sets on average, and in turn to one of them.

        Args:
            known: Columns that are not new.
            most: How many to return, if there are as many.
        """
        precision = self.open / np.square(self.errors)
        average = (self.adds * precision).sum(axis=0) / np.maximum(precision.sum(axis=0), 1e-9)
        peak = np.where(self.open, self.adds - self.errors, -np.inf).max(axis=0)
        orders = [np.argsort(-average, kind="stable"), np.argsort(-peak, kind="stable")]
        left = set(range(self.sets.shape[1])) - set(known.tolist())
        new: list[int] = []
        while len(new) < most and left:
            order = orders[len(new) % 2]
            new.append(next(int(column) for column in order if int(column) in left))
            left.remove(new[-1])
        return np.array(new, dtype=np.intp)


def look_beside(
    measuring: Measuring, sets: Bools, items: int
) -> Generator[Plan, Measurement, Beside]:
    """Takes gradients where sets are ablated, and a few random components with them.

    Args:
        measuring: Measures.
        sets: Masks of the sets, `(sets, components)`.
        items: Items of the task, and as many of the others, for each set.
    """
    number, components = sets.shape
    few = np.full(number, max(1, round(_EXTRA * components)))
    masks = sets | random_masks(few, np.arange(components), components, measuring.rng)
    task, others = yield from measuring.slopes(masks, items)
    adds, variance = _mean(task)
    if others is not None:
        shared, more = _mean(others)
        adds, variance = adds - measuring.weight * shared, variance + measuring.weight**2 * more
    # a few items do not know their own spread: half of it is that of all sets
    errors = np.sqrt((variance + variance.mean(axis=0)) / 2) + 1e-3
    return Beside(sets, adds, errors, ~masks)


def sets_and_items(rows: int, bundle: int) -> tuple[int, int]:
    """How many sets, and items for each, some rows allow.

    Args:
        rows: Rows to spend.
        bundle: Rows of one item of the task and one of the others.
    """
    affordable = rows // (ROW * bundle)
    items = max(1, min(_ITEMS, affordable // 2))
    return affordable // items, items


def _mean(slopes: Floats) -> tuple[Floats, Floats]:
    """Mean over items, without the few huge ones, and its variance: `(sets, components)` each."""
    most = np.quantile(np.abs(slopes), _CLIPPED, axis=(0, 1))
    clipped = np.clip(slopes, -most, most)
    means: Floats = clipped.mean(axis=1)
    return means, clipped.var(axis=1) / slopes.shape[1]
