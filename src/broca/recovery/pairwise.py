"""A model of the joint effect of a few components: main effects and pairs, with uncertainty."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

_SCALES = (0.03, 0.1, 0.3)
"""Candidate standard deviations of the coefficients; the fit takes the likeliest."""


class PairwiseModel:
    """Bayesian linear regression on the members of a set and on their pairs.

    The prior of the coefficients is normal, with its scale from the marginal likelihood (empirical
    Bayes); the noise is known. With `n` components there are `n + n (n - 1) / 2` coefficients: the
    model is meant for about twenty components.

    Args:
        components: Number of components.
        largest: Maximum number of members of proposed sets.
        cost: Minimum gain of each member of a set, in units of the response.
        prior: Prior mean of the value of each component, `(components,)`; zero if None.
        pairs: Standard deviation of pair coefficients relative to that of the main effects.
    """

    def __init__(
        self,
        components: int,
        *,
        largest: int,
        cost: float,
        prior: NDArray[np.float64] | None = None,
        pairs: float = 1.0,
    ) -> None:
        self._first, self._second = np.triu_indices(components, 1)
        self._components = components
        self._largest = largest
        self._cost = cost
        self._prior = np.zeros(components + len(self._first))
        if prior is not None:
            self._prior[:components] = prior
        self._spread = np.ones(len(self._prior))
        self._spread[components:] = pairs

    def fit(
        self,
        sets: NDArray[np.bool_],
        values: NDArray[np.float64],
        *,
        noise: float | NDArray[np.float64],
        references: NDArray[np.bool_] | None = None,
    ) -> Self:
        """Fits the values of sets; the empty set has the value zero.

        Args:
            sets: Members of every set, `(sets, components)`.
            values: Measured value of every set, `(sets,)`.
            noise: Standard error of the values, a number or `(sets,)`.
            references: Reference set of every value, `(sets, components)`: a value is the
                difference of the set and its reference. The empty set by default.
        """
        features = self._features(sets)
        if references is not None:
            features = features - self._features(references)
        errors = np.broadcast_to(noise, len(values))
        away = (values - features @ self._prior) / errors
        features = features / errors[:, None]
        gram, projected = features.T @ features, features.T @ away
        best = -np.inf
        for scale in _SCALES:
            precision = gram + np.diag(1 / (scale * self._spread) ** 2)
            factor = np.linalg.cholesky(precision)
            solved = np.linalg.solve(factor, projected)
            # logarithm of the marginal likelihood, up to a constant
            evidence = (
                0.5 * solved @ solved
                - np.log(np.diag(factor)).sum()
                - len(gram) * float(np.log(scale))
            )
            if evidence > best:
                best, self._factor = evidence, factor
                self._mean = self._prior + np.linalg.solve(factor.T, solved)
        return self

    def values(self, sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Returns the fitted values of sets, `(sets,)`."""
        worth: NDArray[np.float64] = self._features(sets) @ self._mean
        return worth

    def errors(
        self, sets: NDArray[np.bool_], reference: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Returns the posterior standard deviation of values, or of differences from another set.

        Args:
            sets: Members of every set, `(sets, components)`.
            reference: The other set, `(components,)`; the empty set by default.
        """
        features = self._features(sets)
        if reference is not None:
            features = features - self._features(reference[None])
        errors: NDArray[np.float64] = np.linalg.norm(
            np.linalg.solve(self._factor, features.T), axis=0
        )
        return errors

    def net(self, sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Returns the fitted values minus the cost of the members, `(sets,)`."""
        return self._worth(sets, self._mean)

    def best(self, start: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns the best set by the fit that single changes from `start` reach."""
        return self._climb(start, self._mean)

    def draw(self, start: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Returns the best set under one draw of the coefficients from their posterior.

        The probability of a set is its probability of being the best (Thompson sampling).
        """
        drawn = self._mean + np.linalg.solve(self._factor.T, rng.normal(size=len(self._mean)))
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
        """Adds, removes or swaps one member at a time while this increases the net value."""
        members = start.copy()
        value = float(self._worth(members[None], coefficients)[0])
        while True:
            neighbours = self._neighbours(members)
            worth = self._worth(neighbours, coefficients)
            best = int(np.argmax(worth))
            if worth[best] <= value + 1e-9:
                return members
            members, value = neighbours[best], float(worth[best])

    def _neighbours(self, members: NDArray[np.bool_]) -> NDArray[np.bool_]:
        inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
        changes: list[tuple[int, ...]] = [(int(member),) for member in inside]
        if len(inside) < self._largest:
            changes += [(int(new),) for new in outside]
        changes += [(int(old), int(new)) for old in inside for new in outside]
        neighbours = np.repeat(members[None], len(changes), axis=0)
        for row, change in zip(neighbours, changes, strict=True):
            row[list(change)] ^= True
        return neighbours
