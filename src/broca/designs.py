"""Measurement matrices: which components each mask ablates, seeded. NumPy only.

Every design returns a boolean matrix `(masks, components)`, True where a component is ablated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput

_TIE_NOISE = 0.01
"""Standard deviation of the noise that breaks ties between equally used components."""


def bernoulli(masks: int, components: int, *, sparsity: float, seed: int) -> NDArray[np.bool_]:
    """Ablates every component of every mask independently with probability `sparsity`."""
    _check(masks, components, sparsity)
    return np.random.default_rng(seed).random((masks, components)) < sparsity


def stratified(masks: int, components: int, *, sparsity: float, seed: int) -> NDArray[np.bool_]:
    """Ablates equally many components in every mask and every component equally often.

    Each mask takes the `int(sparsity * components)` components used least so far; ties are
    broken by small Gaussian noise. Column counts differ by at most one.

    Raises:
        BadInput: The sparsity leaves every mask empty.
    """
    _check(masks, components, sparsity)
    size = int(sparsity * components)
    if size == 0:
        raise BadInput(
            f"a sparsity of {sparsity:g} ablates none of {components} components in a mask: use "
            f"at least {1 / components:.3g}"
        )
    rng = np.random.default_rng(seed)
    design = np.zeros((masks, components), dtype=bool)
    used = np.zeros(components)
    for mask in design:
        least_used = np.argsort(used + rng.normal(0, _TIE_NOISE, components))[:size]
        mask[least_used] = True
        used[least_used] += 1
    return design


def singles(components: int) -> NDArray[np.bool_]:
    """Ablates one component in each mask, in column order."""
    return np.eye(components, dtype=bool)


def intact(components: int) -> NDArray[np.bool_]:
    """One mask that ablates nothing."""
    return np.zeros((1, components), dtype=bool)


def _check(masks: int, components: int, sparsity: float) -> None:
    if masks < 1 or components < 1:
        raise BadInput(f"a design needs masks and components, not {masks} x {components}")
    if not 0 < sparsity < 1:
        raise BadInput(f"the sparsity must lie between 0 and 1, not at {sparsity:g}")
