"""The worth of any set of components, predicted from gradients at a few measured sets.

The worth of a set is the loss of the task minus the weighted mean loss of the others. An
anchor is a measured set with the slopes of every row's log-odds at this set. Log-odds do not
saturate: their slopes stay informative where a probability is close to 0 or 1. From an anchor, the
log-odds under another set are the measured ones plus the slopes of the components that enter or
leave, and the loss follows. Anchors predict each other, which shows how far slopes can be trusted
and how the error of a prediction grows with the distance of the sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Bools, Floats, Ints

_EDGE = 1e-3
"""Distance of probabilities from 0 and 1, so that log-odds and their slopes stay bounded."""
_TRUSTS = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0])
"""Shares of the slopes that a prediction may use."""
_TRUST, _TRUST_SPREAD = 0.7, 0.25
"""Mean and standard deviation of the share before anchors are compared."""
_ERROR, _ERROR_PAIRS = 0.006, 3
"""Variance of a prediction's error for a distance of 1, and the pairs that this prior counts as."""
_NEAR = 4
"""Distance up to which pairs of anchors estimate the error."""
_PSEUDO = 0.5
"""Standard deviation of a pseudo-row, because the losses of a few rows may agree by chance."""
_SLOPE_ERROR = 0.4
"""Standard deviation of the logarithm of a slope's error in a draw."""
_ENTERING = 40
"""Number of components that a swap considers, those that add most."""


def logistic(odds: Floats) -> Floats:
    """Returns the probability of log-odds, of the same shape."""
    probability: Floats = (1 + np.tanh(odds / 2)) / 2  # does not overflow
    return probability


def log_odds(probability: Floats) -> Floats:
    """Returns the log-odds of probabilities, bounded, of the same shape."""
    inside = np.clip(probability, _EDGE, 1 - _EDGE)
    odds: Floats = np.log(inside / (1 - inside))
    return odds


@dataclass(frozen=True, eq=False)
class Anchor:
    """A measured set of components, with slopes.

    Attributes:
        members: The set, `(components,)`.
        odds: Log-odds of every row's response, `(rows,)`.
        slopes: Their derivatives with respect to the gates, `(rows, components)`.
        intact: Log-odds of every row's item on the intact model, `(rows,)`.
        weights: Weight of every row's loss in the worth, `(rows,)`: they add up to 1 over the
            task's rows, and to minus the weight of the others over theirs.
    """

    members: Bools
    odds: Floats
    slopes: NDArray[np.float32]
    intact: Floats
    weights: Floats

    @cached_property
    def losses(self) -> Floats:
        """Loss of every row, `(rows,)`."""
        return logistic(self.intact) - logistic(self.odds)

    @cached_property
    def worth(self) -> float:
        """The measured worth of the set."""
        return float(self.weights @ self.losses)

    @cached_property
    def variance(self) -> float:
        """Variance of the measured worth."""
        return float(variance_of(self.weights * self.losses, self.weights))

    def distance(self, members: Bools) -> int:
        """Number of components in one of the two sets only."""
        return int((self.members != members).sum())

    def change(self, members: Bools) -> Floats:
        """Returns how much the slopes lower the log-odds with another set, `(rows,)`."""
        lowered: Floats = self.slopes @ (members.astype(np.float32) - self.members)
        return lowered

    def predicted(self, lowered: Floats) -> float:
        """Returns the worth if the log-odds are lowered, `(rows,)`."""
        return float(self.weights @ (logistic(self.intact) - logistic(self.odds - lowered)))

    def drawn(self, trust: float, rng: np.random.Generator | None) -> Anchor:
        """Returns the anchor with trusted slopes; with a generator, as a draw.

        A draw weighs rows at random (the Bayesian bootstrap: Rubin 1981) and errs in every slope.
        """
        if rng is None:
            return replace(self, slopes=trust * self.slopes)
        weights = self.weights * rng.exponential(size=len(self.weights))
        for target in targets(self.weights):
            weights[target] *= self.weights[target].sum() / weights[target].sum()
        errors = trust * np.exp(rng.normal(0, _SLOPE_ERROR, len(self.members)))
        return replace(self, slopes=self.slopes * errors.astype(np.float32), weights=weights)


class Anchors:
    """Predicts the worth of sets by all anchors, the close ones more than the distant ones.

    Args:
        k: Maximum number of members of a set.
        cost: Worth that each member must add.

    Attributes:
        measured: The anchors.
        trust: Share of the slopes that predictions use.
        error: Variance of a prediction's error for a distance of 1; it grows with the square.
    """

    def __init__(self, k: int, cost: float) -> None:
        self.k, self.cost = k, cost
        self.measured: list[Anchor] = []
        self.trust, self.error = _TRUST, _ERROR

    def add(self, anchor: Anchor) -> None:
        """Adds an anchor, and learns from all pairs of anchors how far slopes can be trusted."""
        self.measured.append(anchor)
        pairs = [
            (a, b.worth, a.change(b.members), a.variance + b.variance, a.distance(b.members))
            for a in self.measured
            for b in self.measured
            if a.distance(b.members)
        ]
        if len(self.measured) < 3 or not pairs:
            return
        squares = np.array([distance for *_, distance in pairs], dtype=float) ** 2
        noise = np.array([variance for *_, variance, _ in pairs])
        near = squares <= _NEAR**2
        near |= near.sum() < _ERROR_PAIRS
        best = -np.inf
        for trust in _TRUSTS:
            wrong = np.array(
                [a.predicted(trust * change) - worth for a, worth, change, *_ in pairs]
            )
            excess = np.maximum(0, wrong**2 - noise)[near] / squares[near]
            error = (_ERROR_PAIRS * _ERROR + excess.sum()) / (_ERROR_PAIRS + near.sum())
            variance = noise + error * squares
            # an anchor is in many pairs: all pairs count as two for each anchor
            fit = -(wrong**2 / variance + np.log(variance)).mean() * len(self.measured)
            fit -= ((trust - _TRUST) / _TRUST_SPREAD) ** 2 / 2
            if fit > best:
                best, self.trust, self.error = fit, float(trust), float(error)

    def worth(self, members: Bools) -> tuple[float, float]:
        """Returns the expected worth of a set and its variance."""
        views = [anchor.drawn(self.trust, None) for anchor in self.measured]
        values, precisions = self._by_each(views, members, np.zeros(1, dtype=np.intp), flip=False)
        precision = precisions.sum(axis=0)
        return float((values * precisions).sum(axis=0)[0] / precision[0]), float(1 / precision[0])

    def best(
        self, start: Bools, rng: np.random.Generator | None = None, *, hope: float = 0.0
    ) -> Bools:
        """Returns the best set that adding, removing or swapping one member at a time can reach.

        Args:
            start: The first set, `(components,)`.
            rng: Draws the anchors, so that sets are found as often as they may be the best
                (Thompson sampling); None takes their means.
            hope: Standard errors that are added to the worth, which leads to sets that differ from
                all anchors.
        """
        views = [anchor.drawn(self.trust, rng) for anchor in self.measured]
        members = start.copy()
        flipped = partial(self._flipped, views, hope)
        while True:
            steps = self._steps(flipped, members)
            value, flips = max(steps)
            if value <= steps[0][0] + 1e-9:
                return members
            members[list(flips)] ^= True

    def neighbors(self, members: Bools, number: int) -> Bools:
        """Returns the sets of largest worth with one member more, or without room with another.

        Returns:
            The sets, `(at most number, components)`, the best first.
        """
        views = [anchor.drawn(self.trust, None) for anchor in self.measured]
        flipped = partial(self._flipped, views, 0.0)
        steps = self._steps(flipped, members)[1:]
        if members.sum() < self.k:
            steps = [step for step in steps if len(step[1]) == 1 and not members[step[1][0]]]
        else:
            steps = [step for step in steps if len(step[1]) == 2]
        steps.sort(key=lambda step: -step[0])
        sets = np.repeat(members[None], min(number, len(steps)), axis=0)
        for changed, (_, flips) in zip(sets, steps, strict=False):
            changed[list(flips)] ^= True
        return sets

    def _steps(
        self, flipped: Callable[..., Floats], members: Bools
    ) -> list[tuple[float, tuple[int, ...]]]:
        """Returns a set and the sets with one member more, less or other: values and flips."""
        inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
        value = flipped(members, np.zeros(1, dtype=np.intp), flip=False)
        steps: list[tuple[float, tuple[int, ...]]] = [(float(value[0]), ())]
        entering = outside
        if len(outside):
            values = flipped(members, outside)
            entering = outside[np.argsort(-values, kind="stable")[:_ENTERING]]
            if len(inside) < self.k:
                steps += [(float(v), (int(c),)) for v, c in zip(values, outside, strict=True)]
        if len(inside):
            values = flipped(members, inside)
            steps += [(float(v), (int(c),)) for v, c in zip(values, inside, strict=True)]
        for member in inside.tolist():
            smaller = members.copy()
            smaller[member] = False
            values = flipped(smaller, entering)
            steps += [(float(v), (member, int(c))) for v, c in zip(values, entering, strict=True)]
        return steps

    def _flipped(
        self,
        views: Sequence[Anchor],
        hope: float,
        members: Bools,
        columns: Ints,
        *,
        flip: bool = True,
    ) -> Floats:
        """Returns the hoped worth minus costs after each column is flipped, `(columns,)`."""
        values, precisions = self._by_each(views, members, columns, flip=flip)
        sizes = members.sum() + (np.where(members[columns], -1, 1) if flip else 0)
        precision = precisions.sum(axis=0)
        worth: Floats = (values * precisions).sum(axis=0) / precision + hope / np.sqrt(precision)
        return worth - self.cost * sizes

    def _by_each(
        self, views: Sequence[Anchor], members: Bools, columns: Ints, *, flip: bool
    ) -> tuple[Floats, Floats]:
        """Returns each anchor's prediction and its precision, `(anchors, columns)` each."""
        values, variances = np.empty((2, len(views), len(columns)))
        change = np.where(members[columns], -1, 1) if flip else np.zeros(len(columns), dtype=int)
        for row, (view, anchor) in enumerate(zip(views, self.measured, strict=True)):
            moved = (view.odds - view.change(members))[:, None] - view.slopes[:, columns] * change
            values[row] = view.weights @ (logistic(view.intact)[:, None] - logistic(moved))
            nearer = members[columns] != view.members[columns]
            distance = view.distance(members) + np.abs(change) * np.where(nearer, -1, 1)
            variances[row] = anchor.variance + self.error * distance**2
        return values, 1 / variances


def targets(weights: Floats) -> list[Bools]:
    """Returns which rows are of the task, and which are of the others if there are any."""
    return [target for target in (weights > 0, weights < 0) if target.any()]


def variance_of(losses: Floats, weights: Floats) -> Floats:
    """Returns the variance of sums of weighted losses.

    A pseudo-row is added to the task's and to the others' rows, so that equal losses still have a
    variance.

    Args:
        losses: Weighted losses, `(..., rows)`.
        weights: Their weights, `(rows,)`.
    """
    total = np.zeros(losses.shape[:-1])
    for target in targets(weights):
        rows = int(target.sum())
        pseudo = (_PSEUDO * np.abs(weights[target]).sum()) ** 2
        total += rows * losses[..., target].var(axis=-1) + pseudo / rows / (rows + 1)
    return total
