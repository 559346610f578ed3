"""Random sets that a claimed set is measured against, and where it stands among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from broca.components import ComponentSet
from broca.errors import BadInput
from broca.evidence import Standing

CONTROLS = 20
"""Random sets of each kind: the fewest with which the best rank means p < 0.05."""

_NEIGHBOURS = 10
"""Among how many nearest in norm the stand-in of a head is drawn."""

_PATIENCE = 200
"""Draws in a row that bring nothing new before fewer sets are accepted."""


def layer_matched(
    components: ComponentSet, columns: Sequence[int], *, count: int = CONTROLS, seed: int = 0
) -> NDArray[np.intp]:
    """Random sets with as many members from each layer as the real one.

    Members of the real set are left out, except where a layer has too few others. The sets differ
    from each other; where so many do not exist, fewer are returned.

    Args:
        components: All components.
        columns: The real set.
        count: How many sets.
        seed: Seed of the draws.

    Returns:
        Columns of every set, `(sets, size)`.

    Raises:
        BadInput: Nothing but the real set can be drawn.
    """
    chosen = set(columns)
    per_layer: dict[tuple[int, str], int] = {}
    for column in columns:
        where = (components[column].layer, components[column].kind)
        per_layer[where] = per_layer.get(where, 0) + 1
    pools = []
    for (layer, kind), wanted in sorted(per_layer.items()):
        every = [
            column
            for column, one in enumerate(components)
            if (one.layer, one.kind) == (layer, kind)
        ]
        free = [column for column in every if column not in chosen]
        pools.append((wanted, free if len(free) >= wanted else every))

    def draw(rng: np.random.Generator) -> list[int]:
        return [
            int(column)
            for wanted, pool in pools
            for column in rng.choice(pool, wanted, replace=False)
        ]

    return _distinct(draw, chosen, count, [seed, 1])


def norm_matched(
    norms: NDArray[np.float64],
    columns: Sequence[int],
    *,
    count: int = CONTROLS,
    seed: int = 0,
) -> NDArray[np.intp]:
    """Random sets in which every member stands for one of nearly the same output norm.

    The stand-in of a member is drawn among the ten heads outside the real set, of any layer, whose
    norms are nearest to its own and which are not yet in the set.

    Args:
        norms: Mean output norm of every component, `(components,)`.
        columns: The real set.
        count: How many sets.
        seed: Seed of the draws.

    Returns:
        Columns of every set, `(sets, size)`.

    Raises:
        BadInput: Too few components lie outside the real set.
    """
    chosen = set(columns)
    free = np.array([column for column in range(len(norms)) if column not in chosen])
    if len(free) < len(columns):
        raise BadInput(
            f"a set of {len(columns)} of {len(norms)} components leaves too few others for random "
            "sets of that size: verify a smaller set"
        )

    def draw(rng: np.random.Generator) -> list[int]:
        taken: list[int] = []
        for column in columns:
            left = free[~np.isin(free, taken)]
            near = left[np.argsort(np.abs(norms[left] - norms[column]), kind="stable")]
            taken.append(int(rng.choice(near[:_NEIGHBOURS])))
        return taken

    return _distinct(draw, chosen, count, [seed, 2])


def _distinct(
    draw: Callable[[np.random.Generator], list[int]],
    chosen: set[int],
    count: int,
    seed: Sequence[int],
) -> NDArray[np.intp]:
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, ...], None] = {}
    failures = 0
    while len(found) < count and failures < _PATIENCE:
        one = tuple(sorted(draw(rng)))
        if one in found or set(one) == chosen:
            failures += 1
        else:
            found[one], failures = None, 0
    if not found:
        raise BadInput("the set leaves no others of its size to compare with: verify a smaller set")
    return np.array(list(found), dtype=np.intp)


def standing(value: float, others: NDArray[np.float64]) -> Standing:
    """Where a value stands among those of random sets: larger is more.

    A tie counts against the real set, so that `p` is never too small.
    """
    rank = 1 + int(np.sum(others >= value - 1e-12))
    spread = float(np.std(others, ddof=1)) if len(others) > 1 else 0.0
    effect = (value - float(np.mean(others))) / spread if spread > 1e-12 else None
    return Standing(float(value), rank, rank / (len(others) + 1), effect)
