"""A short pilot: how many components a random mask should ablate."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.measurement import Measurement, Plan

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
"""Shares of the components that are tried."""

MOST_MASKS = 16
"""Most masks of each size."""

SPREAD = 0.7
"""Sizes of masks vary by up to this factor's exponential around the size that the pilot chose."""

LOST = 0.35
"""Mean drop, as a share of the intact response, at which masks tell most: neither all rows are
intact nor all are destroyed, and effects still nearly add up."""

Drops = Callable[[NDArray[np.bool_]], Generator[Plan, Measurement, Any]]
"""Measures what masks cost: `(masks,)`, or with a column for each task or item."""


def pilot(
    drops: Drops,
    components: int,
    *,
    masks: int,
    rng: np.random.Generator,
    sizes: Sequence[int] | None = None,
    intact: float | None = None,
) -> Generator[Plan, Measurement, tuple[int, dict[int, NDArray[np.float64]]]]:
    """Finds the size of masks that costs about a third of the intact response.

    Too few ablated components leave the task intact, too many destroy it: both say nothing. Means
    of few masks are steadier than their spread, which decides where responses have no zero.

    Args:
        drops: Measures what masks cost.
        components: How many there are.
        masks: Masks of each size, at most `MOST_MASKS`.
        rng: Draws them; every component is ablated equally often.
        sizes: Sizes to try, ascending; those of `SHARES` if None.
        intact: Mean response of the intact model, where 0 is what a destroyed task is worth; None
            takes the size at which responses vary most, on average over the columns.

    Returns:
        The size, and the drops by size.
    """
    sizes = sizes_of(components) if sizes is None else sizes
    lost = {}
    for size in sizes:
        drawn = designs.balanced(min(MOST_MASKS, masks), components, size=size, rng=rng)
        lost[size] = yield from drops(drawn)
    if intact is None:
        return max(lost, key=lambda size: float(lost[size].std(axis=0).mean())), lost
    return min(lost, key=lambda size: abs(float(lost[size].mean()) - LOST * intact)), lost


def sizes_of(components: int, shares: Sequence[float] = SHARES) -> list[int]:
    """The distinct sizes of masks that shares of the components come to, at least 1."""
    return sorted({max(1, round(share * components)) for share in shares})


def random_masks(
    sizes: NDArray[Any], among: NDArray[np.intp], components: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """One mask of each size, its members drawn from `among`: `(sizes, components)`."""
    masks = np.zeros((len(sizes), components), dtype=bool)
    for mask, size in zip(masks, sizes, strict=True):
        mask[rng.choice(among, int(size), replace=False)] = True
    return masks


def spread_masks(
    size: float, count: int, among: NDArray[np.intp], components: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Masks of different sizes about one, their members drawn from `among`: `(count, components)`.

    Sizes differ, so that the number of ablated components can be told from each of them.
    """
    sizes = np.round(size * np.exp(rng.uniform(-SPREAD, SPREAD, count)))
    return random_masks(np.clip(sizes, 1, len(among)), among, components, rng)
