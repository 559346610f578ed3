"""Screening: random masks narrow the candidates down to a short list."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Measurement, Plan
from broca.recovery import Additivity, Estimates, NonPositiveLasso, additivity, estimate
from broca.searches.measuring import Bools, Floats, Measuring
from broca.searches.pilot import spread_masks

SHORT = 16
"""Most components on the short list."""

_ROUNDS = 2
"""Most rounds: more of them decide on too few rows each (experiments/LOG.md)."""
_MOVERS = 8
"""Places on the short list for those whose loss moves the task's answers most, in either direction
and whatever they do to others."""
_SHARED = 0.5
"""Share of the masks that the others are asked about as well: of two estimates whose difference
counts, one is a mean over many tasks, and steadier."""
_RESAMPLES = 20
_NOTHING = 0.01
"""An effect below which a component does nothing."""
_SIZES = 6
"""Groups of masks of about one size that are compared in a round, at most."""
_FEWEST_ALIKE = 20
"""Masks that each of them has at least; where a round has fewer, it is one group."""


@dataclass(frozen=True)
class Screened:
    """What screening found.

    Attributes:
        target: Effect of each component on the task, `(components,)`.
        others: Mean effect on the others, `(components,)`.
        short: Columns of the short list.
        frequency: Share of resamples in which the task needs each component, `(components,)`.
        universal: Share of resamples in which the others need it, `(components,)`.
        weight: What an effect on the others counts for.
        estimates: Effects on the task without shrinkage, and how sure they are.
        additivity: How well effects on the task add up; None where nothing varied.
    """

    target: Floats
    others: Floats
    short: NDArray[np.intp]
    frequency: Floats
    universal: Floats
    weight: float
    estimates: Estimates
    additivity: Additivity | None

    @property
    def contrast(self) -> Floats:
        """Effect on the task beyond that on the others, of the short list."""
        beyond: Floats = (self.target - self.weight * self.others)[self.short]
        return beyond

    def masks(self, sets: Bools) -> Bools:
        """Masks over all components of sets over the short list."""
        masks = np.zeros((len(sets), len(self.target)), dtype=bool)
        masks[:, self.short] = sets
        return masks


def screen(measuring: Measuring, share: float, rows: int) -> Generator[Plan, Measurement, Screened]:
    """Narrows the candidates down to a short list; every round keeps an equal share of them.

    Args:
        measuring: Measures.
        share: Share of the candidates that a mask ablates.
        rows: Rows to spend.
    """
    count = measuring.problem.components
    alive = np.arange(count)
    masks_in_all = int(rows / rows_per_mask(others=bool(measuring.problem.others)))
    halvings = int(np.ceil(np.log2(max(2.0, count / SHORT))))
    rounds = max(1, min(_ROUNDS, halvings, masks_in_all // SHORT))
    per_round = masks_in_all // rounds
    shrink = min(1.0, SHORT / count) ** (1 / rounds)
    masks = shared = np.zeros((0, count), dtype=bool)  # shared: the others answered them too
    task, others = np.zeros(0), np.zeros(0)
    effects, general, moves = np.zeros(count), np.zeros(count), np.zeros(count)
    for number in range(rounds):
        fresh = spread_masks(share * len(alive), per_round, alive, count, measuring.rng)
        lost, lost_elsewhere = yield from _losses(measuring, fresh)
        masks, shared = np.vstack([masks, fresh]), np.vstack([shared, fresh[: len(lost_elsewhere)]])
        task, others = np.concatenate([task, lost]), np.concatenate([others, lost_elsewhere])
        effects[alive] = _effects(masks[:, alive], -task)
        general[alive] = _effects(shared[:, alive], -others) if measuring.problem.others else 0.0
        moves[alive] = _effects(masks[:, alive], -np.sqrt(np.abs(task)))
        last = number == rounds - 1
        keep = SHORT if last else max(SHORT, round(count * shrink ** (number + 1)))
        alive = _best(alive, effects - measuring.weight * general, moves, keep)
    penalty = _penalty(masks, -task)
    return Screened(
        target=effects,
        others=general,
        short=alive,
        frequency=_often(masks, -task, penalty, measuring.rng),
        universal=_often(shared, -others, _penalty(shared, -others), measuring.rng),
        weight=measuring.weight,
        estimates=estimate(masks, -task, _alike(masks, per_round)),
        additivity=additivity(
            masks, -task, NonPositiveLasso(penalty=penalty), seed=measuring.problem.seed
        ),
    )


def _alike(masks: Bools, per_round: int) -> NDArray[np.intp]:
    """Which masks are compared when effects are estimated: `(masks,)`, equal for those that are.

    Masks of a round and of about one size: later rounds draw from fewer components, and a
    component in a mask is more often in a large one, and would take the blame for the others.
    """
    strata = np.zeros(len(masks), dtype=np.intp)
    groups = int(np.clip(per_round // _FEWEST_ALIKE, 1, _SIZES))
    for number, first in enumerate(range(0, len(masks), max(1, per_round))):
        in_round = slice(first, first + per_round)
        sizes = masks[in_round].sum(axis=1)
        ends = np.quantile(sizes, np.linspace(0, 1, groups + 1)[1:-1])
        strata[in_round] = number * _SIZES + np.searchsorted(ends, sizes, side="right")
    return strata


def _losses(
    measuring: Measuring, masks: Bools
) -> Generator[Plan, Measurement, tuple[Floats, Floats]]:
    """What every mask costs the task, and what the first part of them cost the others."""
    if not measuring.problem.others:
        lost = yield from measuring.drops(masks)
        return lost, np.zeros(0)
    shared = round(_SHARED * len(masks))
    first, lost_elsewhere, _ = yield from measuring.bundles(masks[:shared], 1)
    later = yield from measuring.drops(masks[shared:])
    return np.concatenate([first, later]), lost_elsewhere


def rows_per_mask(*, others: bool) -> float:
    """Rows that a mask of the screening takes on average, with other tasks or without."""
    return 1 + _SHARED if others else 1.0


def _effects(masks: Bools, responses: Floats) -> Floats:
    """Effect of each column: never positive, and graded where the Lasso alone would say zero."""
    lasso = NonPositiveLasso().fit(masks, responses).coef_
    centered = masks - masks.mean(axis=0)
    slope = centered.T @ (responses - responses.mean()) / (masks.var(axis=0).sum() + len(masks))
    graded: Floats = lasso + 0.1 * np.minimum(slope, 0.0)
    return graded


def _penalty(masks: Bools, responses: Floats) -> float | None:
    """The penalty that cross-validation chooses; None where nothing varied."""
    return NonPositiveLasso().fit(masks, responses).penalty_ if len(masks) else None


def _often(
    masks: Bools, responses: Floats, penalty: float | None, rng: np.random.Generator
) -> Floats:
    """How often each component has an effect when the rows are drawn anew, `(components,)`."""
    count = np.zeros(masks.shape[1])
    if penalty is None:
        return count
    for _ in range(_RESAMPLES):
        rows = rng.integers(len(masks), size=len(masks))
        fit = NonPositiveLasso(penalty=penalty).fit(masks[rows], responses[rows])
        count += fit.coef_ < -_NOTHING
    return count / _RESAMPLES


def _best(alive: NDArray[np.intp], contrast: Floats, moves: Floats, keep: int) -> NDArray[np.intp]:
    """The candidates of most contrast, and a part that moves the task's answers most.

    A weak effect drowns in the scatter of the answers that it moves up and down, but rows without
    such a component scatter little: that it moves them shows long before where to.
    """
    movers = round(_MOVERS / SHORT * keep)
    chosen = alive[np.argsort(contrast[alive], kind="stable")][: max(1, keep - movers)].tolist()
    for column in alive[np.argsort(moves[alive], kind="stable")].tolist():
        if len(chosen) >= min(keep, len(alive)):
            break
        if column not in chosen:
            chosen.append(column)
    return np.array(chosen, dtype=np.intp)
