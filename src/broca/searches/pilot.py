"""A short pilot that finds how many components a random mask should ablate."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from broca import designs
from broca.measurement import Bools, Floats
from broca.searches.problem import Search

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
"""Shares of the components that are tried."""

MOST_MASKS = 16
"""Maximum number of masks of each size."""

SPREAD = 0.7
"""Half the range of the logarithm of mask sizes around the chosen size."""

LOST = 0.35
"""Mean drop, as a share of the intact response, at which masks are most informative: neither all
rows are intact nor all are destroyed, and effects still nearly add up."""


def pilot(
    drops: Callable[[Bools], Search[Floats]],
    components: int,
    *,
    masks: int,
    rng: np.random.Generator,
    sizes: Sequence[int] | None = None,
    intact: float | None = None,
) -> Search[tuple[int, dict[int, Floats]]]:
    """Finds the size of masks that costs about a third of the intact response.

    Masks with too few components leave the task intact, and masks with too many destroy it; neither
    is informative. The mean drop decides, because the mean of few masks has less noise than their
    spread. The spread decides for responses without a zero.

    Args:
        drops: Measures the drops of masks: `(masks,)`, or with a column for each task or item.
        components: Number of components.
        masks: Number of masks of each size, at most `MOST_MASKS`.
        rng: Draws the masks; every component is ablated equally often.
        sizes: Sizes to try, ascending; by default those of `SHARES`.
        intact: Mean response of the intact model if a destroyed task has response 0. None chooses
            the size at which responses vary most, on average over the columns.

    Returns:
        The size, and the drops by size.
    """
    lost = {}
    for size in sizes_of(components) if sizes is None else sizes:
        drawn = designs.balanced(min(MOST_MASKS, masks), components, size=size, rng=rng)
        lost[size] = yield from drops(drawn)
    if intact is None:
        return max(lost, key=lambda size: float(lost[size].std(axis=0).mean())), lost
    return min(lost, key=lambda size: abs(float(lost[size].mean()) - LOST * intact)), lost


def growing_size(lost: Mapping[int, Floats], intact: float) -> int:
    """Returns the size that costs about a third of the intact response, if losses grow with size.

    The mean losses of few masks are noisy. They are replaced by the closest losses that do not
    decrease with size (isotonic regression), and of sizes with the same loss the largest is
    returned: if no size costs anything, large masks are the only ones that can.

    Args:
        lost: Drops by size, as `pilot` returns them.
        intact: Mean response of the intact model.
    """
    from scipy.optimize import isotonic_regression

    sizes = sorted(lost)
    means = [float(lost[size].mean()) for size in sizes]
    growing = isotonic_regression(means, weights=[lost[size].size for size in sizes]).x
    distances = np.abs(growing - LOST * intact)
    return sizes[int(np.flatnonzero(distances <= distances.min() + 1e-9)[-1])]


def sizes_of(components: int, shares: Sequence[float] = SHARES) -> list[int]:
    """Returns the distinct sizes of masks of some shares of the components, at least 1."""
    return sorted({max(1, round(share * components)) for share in shares})


def random_masks(sizes: Floats, components: int, rng: np.random.Generator) -> Bools:
    """Draws a mask of each size: `(sizes, components)`."""
    masks = np.zeros((len(sizes), components), dtype=bool)
    for mask, size in zip(masks, sizes, strict=True):
        mask[rng.choice(components, int(size), replace=False)] = True
    return masks


def spread_masks(
    size: float, count: int, components: int, rng: np.random.Generator, *, spread: float = SPREAD
) -> Bools:
    """Draws masks of sizes around `size`: `(count, components)`.

    Sizes differ, so that the effect of the number of ablated components can be estimated too.
    """
    sizes = np.round(size * np.exp(rng.uniform(-spread, spread, count)))
    return random_masks(np.clip(sizes, 1, components), components, rng)
