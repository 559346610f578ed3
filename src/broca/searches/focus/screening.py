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
"""Maximum number of components on the short list."""

_ROUNDS = 2
"""Maximum number of rounds: more rounds would have too few rows each (experiments/LOG.md)."""
_MOVERS = 8
"""Places on the short list for the components whose ablation changes the task's responses most, in
either direction and regardless of the others."""
_SHARED = 0.5
"""Share of the masks that are measured on the others too: their estimate, a mean over many tasks,
has less noise than the task's."""
_RESAMPLES = 20
_NOTHING = 0.01
"""Effect below which a component counts as having none."""
_SIZES = 6
"""Maximum number of groups of masks of similar size in a round."""
_FEWEST_IN_GROUP = 20
"""Minimum number of masks of a group; a round with fewer masks is one group."""


@dataclass(frozen=True)
class Screened:
    """The result of screening.

    Attributes:
        target: Effect of each component on the task, `(components,)`.
        others: Mean effect on the others, `(components,)`.
        short: Columns of the short list.
        frequency: Share of resamples in which the task needs each component, `(components,)`.
        universal: Share of resamples in which the others need it, `(components,)`.
        weight: Weight of an effect on the others.
        estimates: Effects on the task without shrinkage, with their uncertainty.
        additivity: How well effects on the task add up; None if responses are constant.
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
        """Effect on the task minus the weighted effect on the others, for the short list."""
        beyond: Floats = (self.target - self.weight * self.others)[self.short]
        return beyond

    def masks(self, sets: Bools) -> Bools:
        """Returns the masks over all components of sets over the short list."""
        masks = np.zeros((len(sets), len(self.target)), dtype=bool)
        masks[:, self.short] = sets
        return masks


def screen(measuring: Measuring, share: float, rows: int) -> Generator[Plan, Measurement, Screened]:
    """Reduces the candidates to a short list; every round keeps the same share of them.

    Args:
        measuring: Measures.
        share: Share of the candidates that a mask ablates.
        rows: Number of rows to measure.
    """
    count = measuring.problem.components
    alive = np.arange(count)
    masks_in_all = int(rows / rows_per_mask(others=bool(measuring.problem.others)))
    halvings = int(np.ceil(np.log2(max(2.0, count / SHORT))))
    rounds = max(1, min(_ROUNDS, halvings, masks_in_all // SHORT))
    per_round = masks_in_all // rounds
    shrink = min(1.0, SHORT / count) ** (1 / rounds)
    masks = shared = np.zeros((0, count), dtype=bool)  # shared: measured on the others too
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
        estimates=estimate(masks, -task, _size_groups(masks, per_round)),
        additivity=additivity(
            masks, -task, NonPositiveLasso(penalty=penalty), seed=measuring.problem.seed
        ),
    )


def _size_groups(masks: Bools, per_round: int) -> NDArray[np.intp]:
    """Returns the group of each mask within which effects are estimated, `(masks,)`.

    A group has masks of the same round and of similar size. Later rounds draw from fewer
    components, and large masks contain a component more often; without groups the component would
    be blamed for the loss of the others.
    """
    strata = np.zeros(len(masks), dtype=np.intp)
    groups = int(np.clip(per_round // _FEWEST_IN_GROUP, 1, _SIZES))
    for number, first in enumerate(range(0, len(masks), max(1, per_round))):
        in_round = slice(first, first + per_round)
        sizes = masks[in_round].sum(axis=1)
        ends = np.quantile(sizes, np.linspace(0, 1, groups + 1)[1:-1])
        strata[in_round] = number * _SIZES + np.searchsorted(ends, sizes, side="right")
    return strata


def _losses(
    measuring: Measuring, masks: Bools
) -> Generator[Plan, Measurement, tuple[Floats, Floats]]:
    """Measures the task's loss for every mask, and the others' for the first part of them."""
    if not measuring.problem.others:
        lost = yield from measuring.drops(masks)
        return lost, np.zeros(0)
    shared = round(_SHARED * len(masks))
    first, lost_elsewhere, _ = yield from measuring.bundles(masks[:shared], 1)
    later = yield from measuring.drops(masks[shared:])
    return np.concatenate([first, later]), lost_elsewhere


def rows_per_mask(*, others: bool) -> float:
    """Returns the mean number of rows of a screening mask, with or without other tasks."""
    return 1 + _SHARED if others else 1.0


def _effects(masks: Bools, responses: Floats) -> Floats:
    """Returns the effect of each column, never positive; zeros of the Lasso are graded too."""
    lasso = NonPositiveLasso().fit(masks, responses).coef_
    centered = masks - masks.mean(axis=0)
    slope = centered.T @ (responses - responses.mean()) / (masks.var(axis=0).sum() + len(masks))
    graded: Floats = lasso + 0.1 * np.minimum(slope, 0.0)
    return graded


def _penalty(masks: Bools, responses: Floats) -> float | None:
    """Returns the penalty that cross-validation chooses; None if responses are constant."""
    return NonPositiveLasso().fit(masks, responses).penalty_ if len(masks) else None


def _often(
    masks: Bools, responses: Floats, penalty: float | None, rng: np.random.Generator
) -> Floats:
    """Returns the share of resamples in which each component has an effect, `(components,)`."""
    count = np.zeros(masks.shape[1])
    if penalty is None:
        return count
    for _ in range(_RESAMPLES):
        rows = rng.integers(len(masks), size=len(masks))
        fit = NonPositiveLasso(penalty=penalty).fit(masks[rows], responses[rows])
        count += fit.coef_ < -_NOTHING
    return count / _RESAMPLES


def _best(alive: NDArray[np.intp], contrast: Floats, moves: Floats, keep: int) -> NDArray[np.intp]:
    """Returns the candidates of largest contrast, and those that change the task's responses most.

    A component that changes responses in both directions has a weak mean effect but a large effect
    on their variance, which is detected with fewer rows.
    """
    movers = round(_MOVERS / SHORT * keep)
    chosen = alive[np.argsort(contrast[alive], kind="stable")][: max(1, keep - movers)].tolist()
    for column in alive[np.argsort(moves[alive], kind="stable")].tolist():
        if len(chosen) >= min(keep, len(alive)):
            break
        if column not in chosen:
            chosen.append(column)
    return np.array(chosen, dtype=np.intp)
