"""The posterior of the worth of any set of components, and what a search concludes from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from broca.measurement import Bools, Floats, Ints
from broca.results.localization import AnswerInfo
from broca.searches.pooled.measurer import ItemUse, LossMeasurer
from broca.searches.pooled.posterior import Posterior, RowSums

_ENOUGH = 3
"""Minimum number of rows of a set whose mean loss contributes to the spread of deviations."""
_LEAST_NOISE = 0.01
"""Minimum standard deviation of a row, even if the rows of every set agree."""
_PARTS: tuple[ItemUse, ...] = ("items", "steps", "confirm")
"""All parts of the items."""
_TRIES = 200
"""Number of draws of which the best sets are candidates, or bound the worth of the best set."""


@dataclass(frozen=True)
class Features:
    """The features of a mask: its components, their pairs, and the number of pairs.

    Attributes:
        columns: Components that have a coefficient.
        short: Components whose interactions have a coefficient each; all are among `columns`. The
            last coefficient is the mean interaction of all pairs, so that one model describes small
            masks and large masks, which lose less than the sum of their effects.
    """

    columns: Ints
    short: Ints

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """First and second members of the pairs, as positions in the short list."""
        first, second = np.triu_indices(len(self.short), 1)
        return first, second

    def of(self, masks: Bools) -> Floats:
        """Returns the features of masks, `(masks, features)`."""
        first, second = self.pairs
        listed, sizes = masks[:, self.short], masks.sum(axis=1, keepdims=True)
        return np.hstack(
            [masks[:, self.columns], listed[:, first] & listed[:, second], sizes * (sizes - 1) / 2]
        ).astype(float)

    @property
    def kinds(self) -> Ints:
        """The kind of each coefficient: effect 0, interaction 1, mean interaction 2."""
        return np.repeat(np.arange(3), [len(self.columns), len(self.pairs[0]), 1])


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

    spread: float = 0.0
    noise: float = 1.0
    measured: Mapping[bytes, tuple[int, float]] = field(default_factory=dict)

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


class Beliefs:
    """The posterior of the worth of sets: the task's loss minus the weighted loss of the others.

    Args:
        measurer: The measured rows, to which rows are added, their problem and the weight of a loss
            of the others; it draws coefficients, and starting points of searches for the best set.
        cost: Minimum worth that each member must add.

    Attributes:
        features: The features of masks, set by `describe`; sets are proposed from its short list.
        posterior: The coefficients of losses, which `describe` sets.
        deviations: Deviations of the task's losses under measured sets from the coefficients.
    """

    features: Features
    posterior: Posterior

    def __init__(self, measurer: LossMeasurer, cost: float) -> None:
        problem, self.cost = measurer.problem, cost
        self.losses, self.components, self.k = measurer.losses, problem.components, problem.k
        self.weight, self.rng = measurer.weight, measurer.rng
        self.deviations = Deviations()
        self._summed: dict[tuple[str, ItemUse], RowSums] = {}

    def describe(self, features: Features) -> None:
        """Fits the model with these features to all rows so far.

        Args:
            features: The new features of masks.
        """
        self.features = features
        self._summed.clear()
        self.posterior = Posterior(features.kinds)
        self.fit()

    def fit(self) -> None:
        """Fits the model to all rows so far."""
        task, others = (self._sums(target, *_PARTS) for target in ("task", "others"))
        self.posterior.fit(task, others, self.rng)
        decisive = self.losses.get(("task", "confirm"))
        if decisive is not None:
            self.deviations = Deviations.of(
                decisive.masks,
                decisive.losses,
                lambda sets: self.features.of(sets) @ self.posterior.task.mean(axis=0),
            )

    @property
    def beyond(self) -> Floats:
        """Draws of the coefficients of the worth: the task's minus the others' weighted loss."""
        return self.posterior.task - self.weight * self.posterior.others

    def _sums(self, target: str, *parts: ItemUse) -> list[RowSums]:
        """Returns the sums of a target's rows, for each part of the items that has rows."""
        found = [(target, part) for part in parts if (target, part) in self.losses]
        for key in found:
            rows, summed = self.losses[key], self._summed.get(key)
            if summed is None or summed.rows != len(rows.losses):
                described, mains = self.features.of(rows.masks), len(self.features.columns)
                self._summed[key] = RowSums.of(described, rows.losses, rows.items, mains)
        return [self._summed[key] for key in found]

    def alone(self, columns: Ints) -> Bools:
        """Returns the sets of one component each, `(columns, components)`."""
        return np.asarray(columns[:, None] == np.arange(self.components))

    def of_single(self, draws: Floats) -> Floats:
        """Returns of draws of all coefficients, `(..., features)`, those of single components."""
        return np.ascontiguousarray(draws[..., : len(self.features.columns)])

    def harms(self) -> Floats:
        """Draws what each component costs the task in the large masks alone: `(draws, columns)`.

        The first half of the draws has the loss of the task, the second half has it minus the loss
        of the others, estimated from their own rows: a loss that the rows cannot attribute is not a
        loss of all tasks here.
        """
        task, others = self.by_rows_of("task", "items"), self.by_rows_of("others", "items")
        return np.vstack([task, task - self.weight * others] if len(others) else [task])

    def by_rows_of(self, target: str, *parts: ItemUse) -> Floats:
        """Draws what each component costs a target by its own rows alone: `(draws, columns)`.

        Returns:
            The draws; none if the target has no rows of these parts, by default of all.
        """
        posterior = Posterior(self.features.kinds)
        if rows := self._sums(target, *(parts or _PARTS)):
            posterior.fit(rows, [], self.rng)
        return self.of_single(posterior.task)

    def values(self, sets: Bools) -> Floats:
        """Returns the expected worth of sets, `(sets,)`."""
        worth: Floats = self.features.of(sets) @ self.beyond.mean(axis=0)
        return worth + self.deviations.expected(sets)[0]

    def errors(self, sets: Bools) -> Floats:
        """Returns the standard errors of the worth, `(sets,)`."""
        _, weight, variance = self.deviations.expected(sets)
        described = self.features.of(sets)
        by_regression = (self.beyond @ described.T).var(axis=0)
        errors: Floats = np.sqrt(by_regression * (1 - weight) ** 2 + variance)
        return errors

    def additions(self, sets: Bools, references: Bools) -> tuple[Floats, Floats]:
        """Returns draws of the worth of sets minus that of references, and of the task's loss.

        Args:
            sets: The sets, `(sets, components)`, or one set for all.
            references: The sets with which they are compared, `(sets, components)`.

        Returns:
            Two arrays, `(draws, sets)` each.
        """
        described = self.features.of(sets) - self.features.of(references)
        return self.beyond @ described.T, self.posterior.task @ described.T

    def doubt_of_others(self) -> float:
        """Returns how many rows of the others for each row of the task minimize the worth's error.

        Errors decrease with the root of the rows, so that rows are divided in proportion to the
        standard errors; the ratio is at least a tenth and at most one.
        """
        if ("others", "items") not in self.losses:
            return 0.0
        best = self.features.of(self.best(self.beyond.mean(axis=0))[None])
        draws = (self.posterior.task, self.posterior.others)
        task, others = (float((drawn @ best.T).std(axis=0)[0]) for drawn in draws)
        return float(np.clip(self.weight * others / max(task, 1e-9), 0.1, 1.0))

    def propose(self, number: int) -> Bools:
        """Draws sets with the probability that they are the best (Thompson sampling).

        Returns:
            The sets, `(number, components)`.
        """
        drawn = self.rng.choice(self.beyond, number)
        return np.array([self.best(coefficients) for coefficients in drawn])

    def candidates(self, number: int) -> Bools:
        """Returns the sets of largest expected worth, among those that may be the best.

        Returns:
            The sets, `(at most number, components)`, the best first.
        """
        expected = self.beyond.mean(axis=0)
        sets = [self.best(expected) for _ in range(_TRIES // 10)]
        drawn = (expected + self.rng.choice(self.beyond, _TRIES)) / 2
        sets += [self.best(coefficients) for coefficients in drawn]
        distinct = np.unique(np.array(sets), axis=0)
        distinct = distinct[distinct.any(axis=1)]
        return distinct[np.argsort(-self.values(distinct), kind="stable")[:number]]

    def bound(self) -> float:
        """Returns an upper bound, at 95 %, of the worth of the best set.

        Every draw has its own best set, and the bound is a quantile of the worth of these sets. It
        holds for whichever set is the best, not for a given set.
        """
        best = []
        for drawn in self.rng.choice(self.beyond, _TRIES):
            members = self.best(drawn)
            best.append(float(self.features.of(members[None])[0] @ drawn))
        return float(np.quantile(best, 0.95))

    def best(self, coefficients: Floats) -> Bools:
        """Returns the best set that adding, removing or swapping one member at a time can reach.

        It starts at a random set of at most k components of the short list.

        Args:
            coefficients: Coefficients of the worth of sets, `(features,)`.

        Returns:
            The set, `(components,)`.
        """
        alone, together = self._quadratic(coefficients)
        members = np.zeros(len(alone), dtype=bool)
        size = int(self.rng.integers(0, min(self.k, len(alone)) + 1))
        members[self.rng.choice(len(alone), size, replace=False)] = True
        while True:
            gain = alone + together @ members  # gain of adding a component, or of keeping it
            inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
            steps: list[tuple[float, tuple[int, ...]]] = []
            if len(inside) < self.k and len(outside):
                new = int(outside[np.argmax(gain[outside])])
                steps.append((float(gain[new]), (new,)))
            if len(inside):
                old = int(inside[np.argmin(gain[inside])])
                steps.append((-float(gain[old]), (old,)))
            if len(inside) and len(outside):
                swaps = gain[outside] - gain[inside][:, None] - together[np.ix_(inside, outside)]
                leaves, enters = np.unravel_index(np.argmax(swaps), swaps.shape)
                pair = (int(inside[leaves]), int(outside[enters]))
                steps.append((float(swaps[leaves, enters]), pair))
            pays, changed = max(steps, default=(0.0, ()))
            if pays <= 1e-9:
                break
            members[list(changed)] ^= True
        full = np.zeros(self.components, dtype=bool)
        full[self.features.short[members]] = True
        return full

    def _quadratic(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Returns the short list's effects minus a member's cost, and interactions `(n, n)`."""
        features = self.features
        first, second = features.pairs
        places = np.searchsorted(features.columns, features.short)
        together = np.full((len(features.short),) * 2, coefficients[-1])
        np.fill_diagonal(together, 0.0)
        pairs = coefficients[len(features.columns) : -1]
        together[first, second] += pairs
        together[second, first] += pairs
        return coefficients[places] - self.cost, together


@dataclass(frozen=True)
class Outcome:
    """The outcome of a search.

    Attributes:
        answer: The answer, one of three.
        members: The best set, `(components,)`.
        worth: Specific drop of the set.
        error: Standard error of the worth.
        bound: Upper bound, at 95 %, of the worth of the best set, by effects of components and
            pairs.
        joint: Upper bound, at 95 %, of what masks of the screen lose beyond the sum of what their
            components cost alone.
        hidden: Where a better set may be, so that no bound is stated; empty for nowhere.
        likely: Whether the set is found if no further rows can be spent, though not by `answer`.
    """

    answer: AnswerInfo
    members: Bools
    worth: float
    error: float
    bound: float
    joint: float
    hidden: str = ""
    likely: bool = False

    @property
    def is_finding(self) -> bool:
        """Whether the set is a finding."""
        return self.answer.says == "found"

    @property
    def reason(self) -> str:
        """Why nothing was selected; empty otherwise."""
        best = f"the best set costs the task {self.worth:.2f} +- {self.error:.2f} more than others"
        if self.is_finding:
            return ""
        if self.answer.says == "nothing":
            return f"no specific harm: no set costs {self.bound:.2f} or more at 95 %, {best}"
        if self.hidden:
            best += f", but {self.hidden}"
        if self.answer.rows_needed is not None:
            best += f"; about {self.answer.rows_needed:,} rows would do"
        return f"not enough rows to tell: {best}"
