"""Deviations of the losses of measured sets from the regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_ENOUGH = 3
"""Minimum number of rows of a set whose mean loss contributes to the spread of deviations."""
_LEAST_NOISE = 0.01
"""Minimum standard deviation of a row, even if the rows of every set agree."""


@dataclass(frozen=True)
class Deviations:
    """Deviations of the mean losses of sets from the losses that a regression predicts.

    A regression on components and pairs cannot describe sets whose members lose nothing until all
    are ablated. Each set therefore has a deviation of its own, normal around zero. The rows of a
    set estimate its deviation, and the deviations of all measured sets estimate their variance
    (empirical Bayes: Efron and Morris 1973).

    Attributes:
        spread: Standard deviation of the deviations of sets; 0 if the regression describes them.
        noise: Standard deviation of a row around the mean of its set.
        measured: Number of rows of each measured set, and its mean loss beyond the predicted loss.
    """

    spread: float
    noise: float
    measured: dict[bytes, tuple[int, float]]

    @classmethod
    def none(cls) -> Self:
        """Returns the deviations of a regression without measured sets."""
        return cls(0.0, 1.0, {})

    @classmethod
    def of(cls, masks: Bools, losses: Floats, predict: Callable[[Bools], Floats]) -> Self:
        """Estimates the deviations.

        Args:
            masks: The set of each row, `(rows, components)`.
            losses: The loss of each row, `(rows,)`.
            predict: Predicts the mean losses of sets, `(sets, components)` to `(sets,)`.
        """
        sets, place = np.unique(masks, axis=0, return_inverse=True)
        place = place.ravel()
        counts = np.bincount(place)
        means = np.bincount(place, losses) / counts
        beyond = means - predict(sets)
        repeated = len(losses) - len(sets)
        variance = np.square(losses - means[place]).sum() / max(1, repeated) + _LEAST_NOISE**2
        enough = counts >= _ENOUGH
        spread = 0.0
        if enough.any():
            excess = np.square(beyond[enough]) - variance / counts[enough]
            spread = float(np.sqrt(max(0.0, np.average(excess, weights=counts[enough]))))
        names = (members.tobytes() for members in sets)
        measured = zip(counts.tolist(), beyond.tolist(), strict=True)
        return cls(spread, float(np.sqrt(variance)), dict(zip(names, measured, strict=True)))

    def expected(self, sets: Bools) -> tuple[Floats, Floats, Floats]:
        """Returns the expected deviations of sets, given their rows.

        Args:
            sets: The sets, `(sets, components)`.

        Returns:
            Three arrays, `(sets,)` each: the expected deviation, the weight of the set's own rows
            relative to the regression, from 0 to 1, and the variance of the expected deviation.
        """
        measured = [self.measured.get(members.tobytes(), (0, 0.0)) for members in sets]
        rows, beyond = np.array(measured, dtype=float).reshape(-1, 2).T
        prior = self.spread**2
        weight = prior * rows / (prior * rows + self.noise**2)
        return weight * beyond, weight, (1 - weight) * prior
