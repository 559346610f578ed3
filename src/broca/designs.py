"""Measurement matrices: which components each mask ablates, seeded. NumPy only.

Every design returns a boolean matrix `(masks, components)`, True where a component is ablated.
"""

from collections.abc import Collection, Iterable

import numpy as np

from broca.errors import BadInput
from broca.measurement import Bools, Ints

_TIE_NOISE = 0.01
"""Standard deviation of the noise that breaks ties between equally used components."""


def bernoulli(masks: int, components: int, *, sparsity: float, seed: int) -> Bools:
    """Ablates every component of every mask independently with probability `sparsity`."""
    _check(masks, components, sparsity)
    return np.random.default_rng(seed).random((masks, components)) < sparsity


def stratified(masks: int, components: int, *, sparsity: float, seed: int) -> Bools:
    """Ablates equally many components in every mask and every component equally often.

    Each mask ablates the `int(sparsity * components)` components that earlier masks ablated least;
    small Gaussian noise breaks ties. Column counts differ by at most one.

    Raises:
        BadInput: The sparsity leaves every mask empty.
    """
    _check(masks, components, sparsity)
    size = int(sparsity * components)
    if size == 0:
        enough = f"{1.01 / components:.3g}"  # not less in three digits
        advice = f"use at least {enough}" if components > 1 else "use one-shot"
        raise BadInput(
            f"a sparsity of {sparsity:g} ablates none of {components} components a mask: {advice}"
        )
    return balanced(masks, components, size=size, rng=np.random.default_rng(seed))


def balanced(masks: int, components: int, *, size: int, rng: np.random.Generator) -> Bools:
    """Ablates in every mask the `size` components that were least used so far; ties are random."""
    design = np.zeros((masks, components), dtype=bool)
    used = np.zeros(components)
    for mask in design:
        least_used = np.argsort(used + rng.normal(0, _TIE_NOISE, components))[:size]
        mask[least_used] = True
        used[least_used] += 1
    return design


def fresh(
    rows: int, components: int, *, items: int, size: int, items_per_mask: int = 1, seed: int
) -> tuple[Bools, Ints, Ints]:
    """Draws a new mask for every row, or for every few rows, with balanced components and items.

    The numbers of ablations of any two components differ by at most one, and so do the numbers of
    rows of any two items. No mask has the same item twice. Masks and items are paired at random.

    Args:
        rows: Total number of rows.
        components: Number of components, the columns of the matrix.
        items: Number of items.
        size: Number of components that each mask ablates.
        items_per_mask: Rows of each mask, on different items; the last mask may have fewer.
        seed: Seed of all random draws.

    Returns:
        Masks `(masks, components)`, the mask of each row and the item of each row, `(rows,)`.

    Raises:
        BadInput: A mask cannot have this size or number of items.
    """
    if not 1 <= size <= components:
        raise BadInput(f"a mask of {components} components cannot ablate {size} of them")
    if not 1 <= items_per_mask <= items:
        raise BadInput(f"a mask cannot be measured on {items_per_mask} of {items} items")
    _check(rows, components, 0.5)
    rng = np.random.default_rng(seed)
    mask_index = np.arange(rows) // items_per_mask
    masks = balanced(int(mask_index[-1]) + 1, components, size=size, rng=rng)
    item_index = np.empty(rows, dtype=np.intp)
    used = np.zeros(items)
    for first in range(0, rows, items_per_mask):
        count = min(items_per_mask, rows - first)
        least_used = np.argsort(used + rng.uniform(0, 0.5, items))[:count]
        item_index[first : first + count] = least_used
        used[least_used] += 1
    return masks, mask_index, item_index


def of_sets(sets: Iterable[Collection[int]], components: int) -> Bools:
    """Ablates a set of columns in each mask."""
    return np.array([np.isin(np.arange(components), list(columns)) for columns in sets])


def singles(components: int) -> Bools:
    """Ablates one component in each mask, in column order."""
    return np.eye(components, dtype=bool)


def intact(components: int) -> Bools:
    """Returns one mask that ablates nothing."""
    return np.zeros((1, components), dtype=bool)


def _check(masks: int, components: int, sparsity: float) -> None:
    if masks < 1 or components < 1:
        raise BadInput(f"a design needs masks and components, not {masks} x {components}")
    if not 0 < sparsity < 1:
        raise BadInput(f"the sparsity must lie between 0 and 1, not at {sparsity:g}")
