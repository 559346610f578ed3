"""Sets of neurons: overlaps, what chance would give, and random sets to compare with."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.neurons.selection import Columns

Matching = Literal["size", "layer"]
"""Random sets of the same size, or with as many neurons in every layer."""


def require_draws(draws: int, matching: str) -> Matching:
    """Refuses a number of random sets, or a way to draw them, that cannot be.

    Raises:
        BadInput: There would be no set, or `matching` is unknown.
    """
    if draws < 1:
        raise BadInput(f"`draws` must be at least 1, not {draws}")
    if matching not in get_args(Matching):
        raise BadInput(f"`matching` '{matching}' is unknown: use size or layer")
    return matching  # type: ignore[return-value]


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


def random_set(
    like: Columns, layers: NDArray[np.intp], *, seed: int, draw: int, matching: Matching = "size"
) -> Columns:
    """A random set disjoint from another and of its size.

    Args:
        like: The set to match; none of it is drawn.
        layers: Layer of every neuron, `(neurons,)`.
        seed: Seed of the run.
        draw: Number of the draw.
        matching: `size` draws from all neurons, `layer` as many from each layer.

    Raises:
        BadInput: There are too few other neurons.
    """
    rng = np.random.default_rng([seed, draw, zlib.crc32(np.sort(like).tobytes())])
    free = np.setdiff1d(np.arange(len(layers)), like)
    wanted = {-1: len(like)}
    if matching == "layer":
        wanted = {int(k): int((layers[like] == k).sum()) for k in np.unique(layers[like])}
    drawn = []
    for layer, count in wanted.items():
        pool = free if layer < 0 else free[layers[free] == layer]
        if len(pool) < count:
            raise BadInput(
                f"{count} neurons are located and only {len(pool)} others are left to draw random "
                "ones from: raise `sigma` or lower `count`"
            )
        drawn.append(rng.choice(pool, count, replace=False))
    return np.sort(np.concatenate(drawn)) if drawn else np.zeros(0, dtype=np.intp)


def random_sets(
    like: Columns, layers: NDArray[np.intp], *, seed: int, draws: int, matching: Matching
) -> list[Columns]:
    """Several random sets; see `random_set`."""
    return [
        random_set(like, layers, seed=seed, draw=draw, matching=matching) for draw in range(draws)
    ]
