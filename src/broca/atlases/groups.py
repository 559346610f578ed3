"""Tests whether heads of a set share key/value groups more often than by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

PERMUTATIONS = 5000


@dataclass(frozen=True)
class GroupCount:
    """The number of pairs of members of a set that share a group.

    Attributes:
        pairs: Number of pairs, over all sets.
        expected: Mean number when heads are permuted within their layers.
        effect: `pairs` minus `expected`, in standard deviations; None if no permutation changes the
            number.
        p: Share of the permutations, the identity included, with as many pairs or more.
        permutations: Number of permutations.
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
    """Tests whether members of sets share groups, by permuting heads within each layer.

    All sets are permuted together, which preserves their numbers of heads in each layer and their
    overlaps.

    Args:
        sets: Columns of each set.
        layers: Layer of each column, `(columns,)`.
        groups: Group of each column within its layer, `(columns,)`.
        seed: Seed of the permutations.
        permutations: Number of permutations.
    """
    rng = np.random.default_rng([seed, 0x6A0])
    places = np.tile(np.arange(len(layers)), (permutations + 1, 1))  # row 0: the identity
    for layer in np.unique(layers):
        columns = np.flatnonzero(layers == layer)
        drawn = np.argsort(rng.random((permutations, len(columns))), axis=1)
        places[1:, columns] = columns[drawn]
    _, owner = np.unique(np.stack([layers, groups]), axis=1, return_inverse=True)
    owners = owner.reshape(-1)[places]  # (permutations + 1, columns)
    pairs = np.zeros(permutations + 1, dtype=np.intp)
    for members in sets:
        for first, second in combinations(members, 2):
            pairs += owners[:, first] == owners[:, second]
    null, real = pairs[1:], int(pairs[0])
    spread = float(null.std())
    return GroupCount(
        real,
        float(null.mean()),
        (real - float(null.mean())) / spread if spread > 0 else None,
        (1 + int((null >= real).sum())) / (permutations + 1),
        permutations,
    )
