"""How sure an effect is: intervals, p-values, false discoveries, and what resamples select."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.recovery.base import coefficients

RESAMPLES = 100
LEVEL = 0.9
DISCOVERY = 0.1
"""Share of false discoveries that is allowed among what is called a discovery."""

_DOUBT = 0.05
"""Chance that a component is taken for sure where none matters (Bonferroni)."""
_NOTHING = 1e-18
"""Share of the variance that is rounding."""
_ROUNDING = 1e-12
"""Share of the responses that differences among equal ones may be."""
_FEWEST = 8
"""Fewest masks of which anything is said."""


@dataclass(frozen=True)
class Estimates:
    """Effects under random masks, beside other ablated components, and how sure they are.

    Attributes:
        estimates: Effects without shrinkage, which the intervals surround, `(components,)`.
        intervals: 90 % interval of each, `(components, 2)`; NaN where there is none.
        p_values: One-sided, of no harm, `(components,)`; 1 where nothing can be said.
        q_values: The same after Benjamini and Hochberg: the share of false discoveries among this
            component and those with smaller ones.
    """

    estimates: NDArray[np.float64]
    intervals: NDArray[np.float64]
    p_values: NDArray[np.float64]
    q_values: NDArray[np.float64]


@dataclass(frozen=True)
class Uncertainty(Estimates):
    """What is known of each component besides its effect.

    Attributes:
        frequency: Share of resamples in which it is among the k most harmful, `(components,)`.
    """

    frequency: NDArray[np.float64]


def estimate(
    masks: NDArray[np.bool_], responses: NDArray[np.float64], strata: NDArray[np.intp] | None = None
) -> Estimates:
    """Estimates every effect beside those that are beyond doubt.

    Sure components are found one after another: the one whose effect is clearest beside those
    before it, for as long as chance among all components makes one so clear in one of 20 cases, and
    there are four masks for each. The estimate of any component is its coefficient in the least
    squares of the responses on itself and those; interval and p-value are Student's. This holds
    because masks are drawn at random: what is left out is nearly uncorrelated with what is in.

    Args:
        masks: 1 where a component was ablated, `(masks, components)`.
        responses: Mean response under each mask, `(masks,)`.
        strata: Which masks are compared, those of the same number, `(masks,)`. Where some masks
            are meant to be larger than others, a component is more often in a large one, and would
            take a part of the blame for all that is in it. All are compared if None.
    """
    from scipy import stats

    matrix, y = np.array(masks, dtype=float), np.array(responses, dtype=float)
    rounding = _ROUNDING * np.abs(y).max(initial=0.0)
    groups = np.zeros(len(y), dtype=np.intp) if strata is None else strata
    numbers = np.unique(groups)
    for number in numbers:
        stratum = groups == number
        matrix[stratum] -= matrix[stratum].mean(axis=0)
        y[stratum] -= y[stratum].mean()
        y[stratum] *= np.abs(y[stratum]).max() > rounding
    estimates, intervals, p_values = _estimated(matrix, y, len(numbers))
    q_values = np.asarray(stats.false_discovery_control(p_values), dtype=float)
    return Estimates(estimates, intervals, p_values, q_values)


def uncertainty(
    masks: NDArray[np.bool_],
    responses: NDArray[np.float64],
    recovery: Any,
    *,
    k: int,
    seed: int,
    resamples: int = RESAMPLES,
) -> Uncertainty:
    """Resamples masks, and tests every component.

    The rows of a mask share what it ablates, so that masks and not rows are drawn: give one
    response for each mask, the mean of its rows. Each resample fits the recovery anew, at the
    penalty that was chosen for all masks where it has one (`penalty_`).

    Args:
        masks: 1 where a component was ablated, `(masks, components)`.
        responses: Mean response under each mask, `(masks,)`.
        recovery: The fitted recovery.
        k: Maximum number of components that are selected.
        seed: Seed of the resamples.
        resamples: How many.
    """
    matrix = np.asarray(masks, dtype=float)
    y = np.asarray(responses, dtype=float)
    count = matrix.shape[1]
    rng = np.random.default_rng([seed, 0xB007])
    settled = _settled(recovery)
    selected = np.zeros(count)
    for _ in range(resamples):
        rows = rng.integers(len(y), size=len(y))
        effects = coefficients(settled.fit(matrix[rows], y[rows]), count, name="of a resample")
        first = np.argsort(effects, kind="stable")[:k]
        selected[first[effects[first] < 0]] += 1
    return Uncertainty(**vars(estimate(masks, responses)), frequency=selected / max(1, resamples))


def _settled(recovery: Any) -> Any:
    """The recovery at the penalty that it chose: resamples need not choose again."""
    from sklearn.base import clone

    penalty = getattr(recovery, "penalty_", None)
    fresh = clone(recovery)
    if penalty is not None and "penalty" in fresh.get_params():
        fresh.set_params(penalty=penalty)
    return fresh


def _estimated(
    matrix: NDArray[np.float64], y: NDArray[np.float64], groups: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Estimates of all components beside the sure ones, intervals, and p-values of no harm.

    Masks and responses are differences from the means of this many groups.
    """
    sure: list[int] = []
    while True:
        columns = np.array(sorted(sure), dtype=np.intp)
        estimates, intervals, p_values = _beside(matrix, y, columns, groups)
        two_sided = 2 * np.minimum(p_values, 1 - p_values)
        two_sided[[*sure, *np.flatnonzero(~np.isfinite(intervals[:, 0]))]] = 1.0
        two_sided[estimates == 0] = 1.0  # no effect at all is not a clear one
        clearest = int(np.argmin(two_sided))
        if two_sided[clearest] * len(two_sided) > _DOUBT or 4 * (len(sure) + 1) > len(y):
            return estimates, intervals, p_values
        sure.append(clearest)


def _beside(
    centered: NDArray[np.float64], target: NDArray[np.float64], sure: NDArray[np.intp], groups: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Least squares of the responses on each component and the sure ones.

    Returns:
        Estimates, intervals, and p-values of no harm.
    """
    from scipy import stats

    rows, count = centered.shape
    estimates, errors = np.zeros(count), np.full(count, np.nan)
    freedom = np.full(count, max(1, rows - 1 - groups - len(sure)))
    freedom[sure] += 1
    # what the sure ones do not explain, of the responses and of every other column
    basis = np.linalg.qr(centered[:, sure])[0] if len(sure) else np.zeros((rows, 0))
    residual = centered - basis @ (basis.T @ centered)
    left = target - basis @ (basis.T @ target)
    weight = (residual**2).sum(axis=0)
    others = np.setdiff1d(np.flatnonzero(weight > 1e-8), sure)
    if rows >= _FEWEST and target.std() > 0:
        estimates[others] = residual[:, others].T @ left / weight[others]
        squares = left @ left - estimates[others] ** 2 * weight[others]
        errors[others] = np.sqrt(np.maximum(squares, 0) / freedom[others] / weight[others])
        if len(sure):
            inverse = np.linalg.pinv(centered[:, sure].T @ centered[:, sure])
            estimates[sure] = inverse @ centered[:, sure].T @ target
            errors[sure] = np.sqrt(left @ left / freedom[sure] * np.maximum(np.diag(inverse), 0))
    total = target @ target
    if total > 0 and left @ left <= _NOTHING * total:  # the sure ones explain all there is
        estimates[others], errors[others] = 0.0, 0.0
    known = np.isfinite(errors)
    half = stats.t.ppf((1 + LEVEL) / 2, freedom) * errors
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = np.where(known, stats.t.cdf(estimates / errors, freedom), 1.0)
    p_values[known & (errors == 0)] = (estimates[known & (errors == 0)] >= 0).astype(float)
    return estimates, np.stack([estimates - half, estimates + half], axis=1), p_values
