"""A pilot of balanced masks: how many components a mask should ablate."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.plan import Measurement, Plan

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
DESTROYED = 0.8
"""Mean drop, as a share of the intact response, beyond which a mask leaves nothing to be lost."""

Drops = Generator[Plan, Measurement, NDArray[np.float64]]


def sizes_of(components: int, shares: Sequence[float] = SHARES) -> list[int]:
    """The distinct sizes of masks that shares of the components come to, at least 1."""
    return sorted({max(1, round(share * components)) for share in shares})


def best_size(
    drops: Callable[[NDArray[np.bool_]], Drops],
    components: int,
    sizes: Sequence[int],
    *,
    masks: int,
    rng: np.random.Generator,
    intact: float | None = None,
) -> Generator[Plan, Measurement, tuple[int, dict[int, NDArray[np.float64]]]]:
    """Finds the size of masks at which the response varies most.

    Too few ablated components leave it intact, too many destroy it: both say nothing.

    Args:
        drops: Measures what masks cost; anything `(masks, ...)`.
        components: Number of components.
        sizes: Sizes to try.
        masks: Masks of each size.
        rng: Draws them.
        intact: Mean response of the intact model; sizes that cost most of it are not taken where
            a smaller one varies too. None judges by the spread alone.

    Returns:
        The size, and the drops by size.
    """
    found = {}
    best, chosen = -1.0, sizes[0]
    for size in sizes:
        drawn = designs.balanced(masks, components, size=size, rng=rng)
        found[size] = yield from drops(drawn)
        spread = float(found[size].std())
        destroyed = intact is not None and found[size].mean() > DESTROYED * intact
        if spread > best and not (destroyed and best > 0):
            best, chosen = spread, size
    return chosen, found
