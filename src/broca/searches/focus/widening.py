"""Widening: finds components that matter only together with others, which screening misses.

A backup acts only once the component that it backs up is ablated, and a further component of a
broken circuit costs nothing more. The gradients of the gates are therefore taken with a promising
set ablated: one row estimates what every component adds to that set.
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
"""Cost in rows of a row with its gradient."""

_ITEMS = 8
"""Maximum number of items of the task, and of the others, for each set."""
_EXTRA = 0.05
"""Share of further components that are ablated at random, so that saturated responses change."""
_CLIPPED = 0.98
"""Quantile beyond which a component's slopes are clipped, because a few are huge."""


@dataclass(frozen=True)
class Additions:
    """The additions of components to sets, estimated by gradients.

    Attributes:
        sets: Masks of the sets, `(sets, components)`.
        adds: Specific drop when each component's gate closes with each set ablated; for a member of
            the set, its part of the set's drop, `(sets, components)`.
        errors: Standard errors of these drops, `(sets, components)`.
        open: Whether each component was intact in the rows of each set, `(sets, components)`.
    """

    sets: Bools
    adds: Floats
    errors: Floats
    open: Bools

    def newcomers(self, short: NDArray[np.intp], most: int) -> NDArray[np.intp]:
        """Returns the components that add most: to all sets on average, and to each set in turn.

        Args:
            short: Columns that are already on the short list.
            most: Maximum number of components to return.
        """
        precision = self.open / np.square(self.errors)
        average = (self.adds * precision).sum(axis=0) / np.maximum(precision.sum(axis=0), 1e-9)
        peak = np.where(self.open, self.adds - self.errors, -np.inf).max(axis=0)
        orders = [np.argsort(-average, kind="stable"), np.argsort(-peak, kind="stable")]
        candidates = set(range(self.sets.shape[1])) - set(short.tolist())
        new: list[int] = []
        while len(new) < most and candidates:
            order = orders[len(new) % 2]
            new.append(next(int(column) for column in order if int(column) in candidates))
            candidates.remove(new[-1])
        return np.array(new, dtype=np.intp)


def measure_additions(
    measuring: Measuring, sets: Bools, items: int
) -> Generator[Plan, Measurement, Additions]:
    """Measures gradients with sets ablated, together with a few random components.

    Args:
        measuring: Measures.
        sets: Masks of the sets, `(sets, components)`.
        items: Number of items of the task, and of the others, for each set.
    """
    number, components = sets.shape
    sizes = np.full(number, max(1, round(_EXTRA * components)))
    masks = sets | random_masks(sizes, np.arange(components), components, measuring.rng)
    task, others = yield from measuring.slopes(masks, items)
    adds, variance = _mean(task)
    if others is not None:
        shared, more = _mean(others)
        adds, variance = adds - measuring.weight * shared, variance + measuring.weight**2 * more
    # a few items estimate their variance badly: half of it is the mean of all sets
    errors = np.sqrt((variance + variance.mean(axis=0)) / 2) + 1e-3
    return Additions(sets, adds, errors, ~masks)


def sets_and_items(rows: int, bundle: int) -> tuple[int, int]:
    """Returns how many sets, and items for each, some rows allow.

    Args:
        rows: Number of rows to measure.
        bundle: Number of rows of an item of the task and an item of the others.
    """
    affordable = rows // (ROW * bundle)
    items = max(1, min(_ITEMS, affordable // 2))
    return affordable // items, items


def _mean(slopes: Floats) -> tuple[Floats, Floats]:
    """Returns the clipped mean over items and its variance, `(sets, components)` each."""
    most = np.quantile(np.abs(slopes), _CLIPPED, axis=(0, 1))
    clipped = np.clip(slopes, -most, most)
    means: Floats = clipped.mean(axis=1)
    return means, clipped.var(axis=1) / slopes.shape[1]
