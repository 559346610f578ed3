"""Overlaps of sets of neurons, their expectation by chance, and random sets."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.neurons.selection import Columns
from broca.results.neurons import Overlap


@dataclass(frozen=True)
class RandomSets:
    """Random sets for comparison with a located set.

    Attributes:
        draws: Number of sets.
        matching: `size` draws from all neurons, `layer` draws as many from each layer.
    """

    draws: int = 5
    matching: str = "size"

    def like(self, columns: Columns, layers: NDArray[np.intp], *, seed: int) -> list[Columns]:
        """Draws random sets that are disjoint from a set and of its size.

        Args:
            columns: The set to match, whose members are not drawn.
            layers: Layer of every neuron, `(neurons,)`.
            seed: Seed of the run.

        Raises:
            BadInput: There are too few other neurons.
        """
        digest = zlib.crc32(np.sort(columns).tobytes())
        free = np.setdiff1d(np.arange(len(layers)), columns)
        if self.matching == "size":
            pools = [(free, len(columns))]
        else:
            used, counts = np.unique(layers[columns], return_counts=True)
            pools = [
                (free[layers[free] == layer], int(count))
                for layer, count in zip(used, counts, strict=True)
            ]
        for pool, count in pools:
            if len(pool) < count:
                raise BadInput(
                    f"{count} neurons are located and only {len(pool)} others are left to draw "
                    "random ones from: raise `sigma` or lower `count`"
                )
        sets = []
        for draw in range(self.draws):
            rng = np.random.default_rng([seed, draw, digest])
            drawn = [rng.choice(pool, count, replace=False) for pool, count in pools]
            sets.append(np.sort(np.concatenate(drawn)))
        return sets


def shared(first: Columns, second: Columns, *, neurons: int) -> Overlap:
    """Compares two sets of a model's `neurons`."""
    common = len(np.intersect1d(first, second))
    expected = len(first) * len(second) / neurons
    larger, total = max(len(first), len(second)), len(first) + len(second)
    return Overlap(
        common=common,
        of_first=_ratio(common, len(first)),
        of_second=_ratio(common, len(second)),
        of_larger=_ratio(common, larger),
        iou=_ratio(common, total - common),
        expected_of_larger=_ratio(expected, larger),
        expected_iou=_ratio(expected, total - expected),
    )


def _ratio(part: float, total: float) -> float | None:
    return part / total if total else None
