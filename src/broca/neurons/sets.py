"""Sets of neurons: overlaps, what chance would give, and random sets to compare with."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput, nearest
from broca.neurons.selection import Columns


@dataclass(frozen=True)
class RandomSets:
    """Random sets to compare a located one with.

    Attributes:
        draws: How many.
        matching: `size` draws from all neurons, `layer` as many from each layer.

    Raises:
        BadInput: There would be none, or `matching` is unknown.
    """

    draws: int = 5
    matching: str = "size"

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise BadInput(f"`draws` must be at least 1, not {self.draws}")
        require_one_of("matching", self.matching, ("size", "layer"))

    def like(self, columns: Columns, layers: NDArray[np.intp], *, seed: int) -> list[Columns]:
        """Random sets disjoint from another and of its size.

        Args:
            columns: The set to match; none of it is drawn.
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


def require_one_of(name: str, value: str, known: Sequence[str]) -> None:
    """Refuses a value of a parameter that does not exist.

    Raises:
        BadInput: It is not among the known ones.
    """
    if value not in known:
        raise BadInput(
            f"`{name}` '{value}' is unknown{nearest(value, known)}; use {', '.join(known)}"
        )


@dataclass(frozen=True)
class Overlap:
    """How much two sets share; NaN where a set that is divided by is empty.

    Attributes:
        common: Neurons in both.
        of_first: Their share of the first set.
        of_second: Their share of the second set.
        of_larger: Their share of the larger set.
        iou: Their share of the union.
        expected_of_larger: `of_larger` of two random sets of these sizes, on average.
        expected_iou: The same of `iou`, to first order.
    """

    common: int
    of_first: float
    of_second: float
    of_larger: float
    iou: float
    expected_of_larger: float
    expected_iou: float


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


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
