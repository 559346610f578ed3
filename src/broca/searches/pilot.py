"""A short pilot: how many components a random mask should ablate."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.plan import Measurement, Plan

SHARES = (0.02, 0.05, 0.1, 0.2, 0.3)
"""Shares of the components that are tried."""

MOST_ROWS = 16
"""Most masks of each size."""

Drops = Callable[[NDArray[np.bool_]], Generator[Plan, Measurement, Any]]
"""Measures what masks cost: `(masks,)`, or `(masks, tasks)`."""


def pilot(
    drops: Drops, components: int, *, rows: int, rng: np.random.Generator
) -> Generator[Plan, Measurement, float]:
    """Finds the share of components at which responses vary most, on average over the tasks.

    Too few leave them intact, too many destroy them: both say nothing.

    Args:
        drops: Measures masks.
        components: How many there are.
        rows: Masks of each size, at most `MOST_ROWS`.
        rng: Draws the masks.
    """
    sizes = sorted({max(1, round(share * components)) for share in SHARES})
    best, chosen = -1.0, sizes[0]
    for size in sizes:
        count = np.full(min(MOST_ROWS, rows), size)
        lost = yield from drops(random_masks(count, np.arange(components), components, rng))
        spread = float(lost.std(axis=0).mean())
        if spread > best:
            best, chosen = spread, size
    return chosen / components


def random_masks(
    sizes: NDArray[Any], among: NDArray[np.intp], components: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """One mask of each size, its members drawn from `among`: `(sizes, components)`."""
    masks = np.zeros((len(sizes), components), dtype=bool)
    for mask, size in zip(masks, sizes, strict=True):
        mask[rng.choice(among, int(size), replace=False)] = True
    return masks
