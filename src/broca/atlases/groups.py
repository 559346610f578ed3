"""Are the heads of one set in the same key/value group more often than chance would have it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

PERMUTATIONS = 5000


@dataclass(frozen=True)
class GroupCount:
    """Pairs of members of one set that share a group.

    Attributes:
        pairs: Their number, over all sets.
        expected: Their mean number when heads change places within their layers.
        effect: `pairs` minus `expected`, in standard deviations; None where no change of places
            changes the number.
        p: Share of the permutations, the real places counted as one, with as many pairs or more.
        permutations: How many were tried.
    """

    pairs: int
    expected: float
    effect: float | None
    p: float
    permutations: int


def count_groups(
    sets: Sequence[Sequence[int]],
    layers: NDArray[np.intp],
    groups: NDArray[np.intp],
    *,
    seed: int,
    permutations: int = PERMUTATIONS,
) -> GroupCount:
    """Tests whether sets keep to groups, by permuting heads within each layer.

    All sets are permuted together: how many heads each takes from a layer stays, and so does what
    they have in common.

    Args:
        sets: Columns of each set.
        layers: Layer of each column, `(columns,)`.
        groups: Group of each column within its layer, `(columns,)`.
        seed: Seed of the permutations.
        permutations: How many.
    """
    rng = np.random.default_rng([seed, 0x6A0])
    places = np.tile(np.arange(len(layers)), (permutations + 1, 1))  # row 0: as they are
    for layer in np.unique(layers):
        columns = np.flatnonzero(layers == layer)
        drawn = np.argsort(rng.random((permutations, len(columns))), axis=1)
        places[1:, columns] = columns[drawn]
    _, owner = np.unique(np.stack([layers, groups]), axis=1, return_inverse=True)
    found = owner.reshape(-1)[places]  # (permutations + 1, columns)
    pairs = np.zeros(permutations + 1, dtype=np.intp)
    for members in sets:
        for one, other in combinations(members, 2):
            pairs += found[:, one] == found[:, other]
    null, real = pairs[1:], int(pairs[0])
    spread = float(null.std())
    return GroupCount(
        real,
        float(null.mean()),
        (real - float(null.mean())) / spread if spread > 0 else None,
        (1 + int((null >= real).sum())) / (permutations + 1),
        permutations,
    )
