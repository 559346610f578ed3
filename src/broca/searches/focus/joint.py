"""Joint rounds: estimates the worth of small sets from the short list, with interactions."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Measurement, Plan
from broca.recovery import PairwiseModel
from broca.searches.focus.screening import Screened
from broca.searches.focus.widening import ROW, Additions, measure_additions, sets_and_items
from broca.searches.measuring import Bools, Floats, Measuring

_BUNDLE = 2
"""Number of rows of the task, and of the others, for a set in a joint round."""
_ROUNDS = 6
"""Maximum number of joint rounds."""
_PER_ROUND = 4
"""Minimum number of sets of a joint round; a small budget has fewer rounds."""
_WIDENINGS = 4
"""Maximum number of widenings of the short list, after the first rounds."""
_ENOUGH = 32
"""Number of items of the task, and of the others, for a widening; a small budget has fewer
widenings."""
_NEWCOMERS = 3
"""Number of components that each widening adds to the short list."""
_POOL = 12
"""Number of sets that enter the knock-out."""
_LEAST_NOISE = 0.02
"""Minimum standard error of a bundle, even if its rows agree."""
_FEW_SETS = 64
"""Number of sets below which estimated interactions are mostly noise."""
_FEW_PAIRS = 1 / 3
"""Prior spread of interactions in that case, relative to the spread of single components."""
_ALL = 0.9
"""Mean specific drop of a round's sets, as a share of the task's intact response, at which rounds
end, because later rounds could add little."""
_SLOPE_ERROR = 0.2
"""Standard error of a slope as a forecast of the loss when the gate closes: gates are not
linear."""


@dataclass(frozen=True)
class Promising:
    """Sets over the short list, and the model of their worth.

    Attributes:
        screened: The result of screening, with the current short list.
        sets: The sets, `(sets, short list)`.
        model: The model of the worth of any set.
    """

    screened: Screened
    sets: Bools
    model: PairwiseModel


def joint_rounds(
    measuring: Measuring, screened: Screened, *, rows: int, widening: int, cost: float
) -> Generator[Plan, Measurement, Promising]:
    """Learns the worth of small sets, and proposes the most promising sets.

    The first sets are single components and random sets; later sets are those that may be the best.
    After some rounds, components that matter only together with such sets join the short list. Once
    all sets that may be the best cost the task nearly its whole response, the remaining rows are
    not spent.

    Args:
        measuring: Measures the rows.
        screened: The result of screening.
        rows: Rows for the sets.
        widening: Rows for widenings; 0 if rows return no gradients.
        cost: Minimum drop that each member of a set must add.
    """
    rng, k, before = measuring.rng, measuring.problem.k, measuring.rows
    affordable = max(1, rows // measuring.bundle_rows(_BUNDLE))
    rounds = min(_ROUNDS, max(1, affordable // _PER_ROUND))
    per_round = affordable // rounds
    bundle = measuring.bundle_rows(1)
    times = min(_WIDENINGS, rounds - 1, int(widening / (ROW * bundle * _ENOUGH)))
    sets_per_widening, items = sets_and_items(widening // max(1, times), bundle)
    measured = _MeasuredSets(screened, k, cost, pairs=_FEW_PAIRS if affordable < _FEW_SETS else 1.0)
    proposed = _first_sets(per_round, len(screened.short), k, rng)
    for number in range(rounds):
        if number:
            proposed = measured.draw(per_round, rng)
        masks = measured.screened.masks(proposed)
        drops, others, error = yield from measuring.bundles(masks, _BUNDLE)
        worth = drops - measuring.weight * others
        measured.add_sets(masks, worth, error)
        # the possible loss of a probability is known, that of a margin or a perplexity is not
        lost_all = (
            measuring.response == "probability" and worth.mean() >= _ALL * measuring.intact_level
        )
        if measuring.stop and 0 < number < rounds - 1 and lost_all:
            measuring.forgo(
                rows + widening - (measuring.rows - before),
                f"the sets proposed last cost the task {worth.mean():.2f} of its "
                f"{measuring.intact_level:.2f}",
            )
            break
        if number < times:
            drawn = measured.screened.masks(measured.draw(sets_per_widening, rng))
            sets = _with_room(drawn, k, rng)
            measured.add_slopes((yield from measure_additions(measuring, sets, items)))
    return measured.most_promising(rng)


class _MeasuredSets:
    """The measurements of sets, and the model that they give.

    Args:
        screened: The result of screening.
        k: Maximum number of members of a set.
        cost: Minimum drop that each member must add.
        pairs: Prior spread of interactions relative to the spread of single components.
    """

    def __init__(self, screened: Screened, k: int, cost: float, *, pairs: float) -> None:
        self.screened = screened
        self._k, self._cost, self._pairs = k, cost, pairs
        self._sets = np.zeros((0, len(screened.target)), dtype=bool)
        self._worth = np.zeros(0)
        self._errors: list[float] = []
        self._additions: list[Additions] = []
        self._model: PairwiseModel | None = None

    def add_sets(self, masks: Bools, worth: Floats, error: float) -> None:
        """Adds the measured worth of sets, `(sets,)`, with its standard error."""
        self._sets = np.vstack([self._sets, masks])
        self._worth = np.concatenate([self._worth, worth])
        self._errors.append(error)
        self._model = None

    def add_slopes(self, additions: Additions) -> None:
        """Records what components add to sets; those that add most join the short list."""
        new = additions.newcomers(self.screened.short, _NEWCOMERS)
        self.screened = replace(self.screened, short=np.concatenate([self.screened.short, new]))
        self._additions.append(additions)
        self._model = None

    @property
    def model(self) -> PairwiseModel:
        """Returns the model of the worth of any set over the short list."""
        if self._model is None:
            self._model = self._fit()
        return self._model

    def draw(self, number: int, rng: np.random.Generator) -> Bools:
        """Draws sets that may be the best, `(number, short list)`."""
        starts = random_sets(number, len(self.screened.short), self._k, rng)
        return np.stack([self.model.draw(start, rng) for start in starts])

    def most_promising(self, rng: np.random.Generator) -> Promising:
        """Returns the best of the measured sets and of the model's forecasts."""
        short = self.screened.short
        starts = random_sets(4 * _POOL, len(short), self._k, rng)
        climbed = [self.model.best(start) for start in starts]
        candidates = np.unique(np.vstack([self._sets[:, short], climbed]), axis=0)
        candidates = candidates[candidates.any(axis=1)]
        best = np.argsort(-self.model.net(candidates), kind="stable")[:_POOL]
        return Promising(self.screened, candidates[best], self.model)

    def _fit(self) -> PairwiseModel:
        short = self.screened.short
        noise = max(_LEAST_NOISE, float(np.sqrt(np.mean(np.square(self._errors)))))
        sets = [self._sets[:, short]]
        less = [np.zeros_like(sets[0])]
        worth, errors = [self._worth], [np.full(len(self._worth), noise)]
        for additions in self._additions:
            rows = zip(additions.sets, additions.adds, additions.errors, strict=True)
            for mask, adds, error in rows:
                columns = np.flatnonzero(~mask[short])
                smaller = np.repeat(mask[short][None], len(columns), axis=0)
                larger = smaller.copy()
                larger[np.arange(len(columns)), columns] = True
                sets.append(larger)
                less.append(smaller)
                worth.append(adds[short[columns]])
                errors.append(np.hypot(error[short[columns]], _SLOPE_ERROR))
        model = PairwiseModel(
            len(short),
            largest=min(self._k, len(short)),
            cost=self._cost,
            prior=-self.screened.contrast,
            pairs=self._pairs,
        )
        return model.fit(
            np.vstack(sets),
            np.concatenate(worth),
            noise=np.concatenate(errors),
            references=np.vstack(less),
        )


def random_sets(number: int, count: int, k: int, rng: np.random.Generator) -> Bools:
    """Draws sets of 1 to k members; highly ranked components are more frequent."""
    weights = np.exp(-np.arange(count) / 10.0)
    sets = np.zeros((number, count), dtype=bool)
    for members in sets:
        size = int(rng.integers(1, min(k, count) + 1))
        members[rng.choice(count, size, replace=False, p=weights / weights.sum())] = True
    return sets


def _first_sets(number: int, count: int, k: int, rng: np.random.Generator) -> Bools:
    """Returns every component alone, and random sets for the remaining rows."""
    alone = np.eye(count, dtype=bool)[:number]
    return np.vstack([alone, random_sets(max(0, number - count), count, k, rng)])


def _with_room(masks: NDArray[np.bool_], k: int, rng: np.random.Generator) -> Bools:
    """Removes a member from sets of k, so that candidates for its place can be measured."""
    smaller = masks.copy()
    for mask in smaller:
        inside = np.flatnonzero(mask)
        if len(inside) >= k:
            mask[rng.choice(inside)] = False
    return smaller
