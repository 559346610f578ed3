"""Intervals by resampling items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval.

    Attributes:
        mean: The mean.
        low: Lower end of the 95 % interval (percentiles of resampled means).
        high: Upper end.
        n: How many values it is the mean of.
    """

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(values: Sequence[float] | NDArray[np.floating], *, seed: int) -> Estimate:
    """The mean of some values and its bootstrap interval; NaN values are left out."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return Estimate(float("nan"), float("nan"), float("nan"), 0)
    rng = np.random.default_rng([seed, 11])
    means = np.array(
        [known[rng.integers(len(known), size=len(known))].mean() for _ in range(RESAMPLES)]
    )
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(float(known.mean()), float(low), float(high), len(known))
