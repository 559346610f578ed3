"""Random control sets, and the rank of a claimed set among them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from broca.components import ComponentSet
from broca.results.verification import Standing

CONTROLS = 20
"""Initial number of random sets of each kind: the smallest with which the best rank has p <
0.05."""

_NEIGHBOURS = 10
"""Number of components of nearest norm among which a replacement is drawn."""

_PATIENCE = 200
"""Number of consecutive draws without a new set after which fewer sets are accepted."""


def layer_matched(
    components: ComponentSet, columns: Sequence[int], *, count: int = CONTROLS, seed: int = 0
) -> NDArray[np.intp]:
    """Draws random sets with as many members from each layer as the real set.

    Members of the real set are excluded. If its layers have too few other components for that many
    sets, components of the nearest layers are used.

    Args:
        components: All components.
        columns: The real set.
        count: Number of sets.
        seed: Seed of the draws.

    Returns:
        Columns of every set, `(sets, size)`; fewer sets, or none, if no more exist.
    """
    chosen = set(columns)
    counts = Counter((components[column].layer, components[column].kind) for column in columns)
    depth = max(component.layer for component in components) + 1
    for reach in range(depth):
        pools = [
            (
                number,
                [
                    column
                    for column, component in enumerate(components)
                    if component.kind == kind
                    and abs(component.layer - layer) <= reach
                    and column not in chosen
                ],
            )
            for (layer, kind), number in sorted(counts.items())
        ]
        if math.prod(math.comb(len(pool), number) for number, pool in pools) >= 2 * count:
            break

    def draw(rng: np.random.Generator) -> list[int] | None:
        drawn: list[int] = []
        for number, pool in pools:
            candidates = [column for column in pool if column not in drawn]
            if len(candidates) < number:
                return None
            drawn += [int(column) for column in rng.choice(candidates, number, replace=False)]
        return drawn

    return _distinct(draw, count, len(columns), [seed, 1])


def norm_matched(
    norms: NDArray[np.floating],
    columns: Sequence[int],
    *,
    kinds: Sequence[str] = (),
    count: int = CONTROLS,
    seed: int = 0,
) -> NDArray[np.intp]:
    """Draws random sets whose members have nearly the same output norms as those of the real set.

    The replacement of a member is drawn among the ten heads of any layer that have the nearest
    norms and are neither in the real set nor yet in the random set; among more heads if ten do not
    give enough sets.

    Args:
        norms: Mean output norm of every component, `(components,)`.
        columns: The real set.
        kinds: Kind of every component if kinds differ: a head is replaced by a head only.
        count: Number of sets.
        seed: Seed of the draws.

    Returns:
        Columns of every set, `(sets, size)`; fewer sets, or none, if no more exist.
    """
    kind = np.array(kinds or [""] * len(norms))
    free = np.setdiff1d(np.arange(len(norms)), np.asarray(columns, dtype=np.intp))
    near = _NEIGHBOURS
    while near < len(free) and math.comb(near, len(columns)) < 2 * count:
        near += 1

    def draw(rng: np.random.Generator) -> list[int] | None:
        drawn: list[int] = []
        for column in columns:
            candidates = free[~np.isin(free, drawn) & (kind[free] == kind[column])]
            if len(candidates) == 0:
                return None
            distances = np.abs(norms[candidates] - norms[column])
            nearest = candidates[np.argsort(distances, kind="stable")]
            drawn.append(int(rng.choice(nearest[:near])))
        return drawn

    return _distinct(draw, count, len(columns), [seed, 2])


def _distinct(
    draw: Callable[[np.random.Generator], list[int] | None],
    count: int,
    size: int,
    seed: Sequence[int],
) -> NDArray[np.intp]:
    rng = np.random.default_rng(seed)
    sets: dict[tuple[int, ...], None] = {}
    failures = 0
    while len(sets) < count and failures < _PATIENCE:
        columns = draw(rng)
        key = None if columns is None else tuple(sorted(columns))
        if key is None or key in sets:
            failures += 1
        else:
            sets[key], failures = None, 0
    return np.array(list(sets), dtype=np.intp).reshape(len(sets), size)


def standing(value: float, others: NDArray[np.float64]) -> Standing:
    """Returns the rank of a value among the values of random sets; larger is more.

    Ties count against the real set, so that `p` is never too small.
    """
    rank = 1 + int(np.sum(others >= value - 1e-12))
    spread = float(np.std(others, ddof=1)) if len(others) > 1 else 0.0
    effect = (value - float(np.mean(others))) / spread if spread > 1e-12 else None
    return Standing(float(value), rank, rank / (len(others) + 1), effect)
