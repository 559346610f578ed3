"""A model of what a few components do together: main effects and pairs, with uncertainty."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import BayesianRidge


class PairwiseModel:
    """Bayesian ridge on the components of a set and on their pairs.

    With `n` components it has `n + n (n - 1) / 2` coefficients; meant for some twenty components.

    Args:
        components: Number of components.
        largest: Most members of the sets that it proposes.
        cost: What each member of a set must add at least, in units of the response.
    """

    def __init__(self, components: int, *, largest: int, cost: float) -> None:
        self._first, self._second = np.triu_indices(components, 1)
        self._components = components
        self._largest = largest
        self._cost = cost

    def fit(self, sets: NDArray[np.bool_], values: NDArray[np.float64]) -> Self:
        """Fits the value of sets.

        Args:
            sets: Members of every set, `(sets, components)`.
            values: What each was worth, `(sets,)`.
        """
        inner = BayesianRidge().fit(self._features(sets), values)
        self._mean = np.asarray(inner.coef_, dtype=float)
        covariance = np.asarray(inner.sigma_, dtype=float)
        jitter = 1e-10 * np.trace(covariance) / len(covariance) + 1e-15
        self._root = np.linalg.cholesky(covariance + jitter * np.eye(len(covariance)))
        return self

    def values(self, sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What sets are worth by the fit, less the cost of their members, `(sets,)`."""
        return self._worth(sets, self._mean)

    def best(self, start: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The best set by the fit that single changes reach from `start`."""
        return self._climb(start, self._mean)

    def draw(self, start: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """The best set under one draw of the coefficients from their posterior.

        Sets come up as often as they may be the best (Thompson sampling).
        """
        drawn = self._mean + self._root @ rng.normal(size=len(self._mean))
        return self._climb(start, drawn)

    def _features(self, sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.hstack([sets, sets[:, self._first] & sets[:, self._second]]).astype(float)

    def _worth(
        self, sets: NDArray[np.bool_], coefficients: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        worth: NDArray[np.float64] = self._features(sets) @ coefficients
        worth -= self._cost * sets.sum(axis=1)
        return worth

    def _climb(
        self, start: NDArray[np.bool_], coefficients: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Adds, removes or swaps one member at a time for as long as that pays."""
        here = start.copy()
        value = float(self._worth(here[None], coefficients)[0])
        while True:
            around = self._neighbours(here)
            worth = self._worth(around, coefficients)
            best = int(np.argmax(worth))
            if worth[best] <= value + 1e-9:
                return here
            here, value = around[best], float(worth[best])

    def _neighbours(self, members: NDArray[np.bool_]) -> NDArray[np.bool_]:
        inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
        changes: list[tuple[int, ...]] = [(int(member),) for member in inside]
        if len(inside) < self._largest:
            changes += [(int(new),) for new in outside]
        changes += [(int(old), int(new)) for old in inside for new in outside]
        around = np.repeat(members[None], len(changes), axis=0)
        for row, change in zip(around, changes, strict=True):
            row[list(change)] ^= True
        return around
