"""Uncertainty of effects: intervals, p-values, false discoveries, selections of resamples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.recovery.base import coefficients

RESAMPLES = 100
LEVEL = 0.9
DISCOVERY = 0.1
"""Allowed share of false discoveries among discoveries."""

_DOUBT = 0.05
"""Probability that any component counts as sure if none has an effect (Bonferroni)."""
_NOTHING = 1e-18
"""Share of the variance that counts as rounding."""
_ROUNDING = 1e-12
"""Largest difference of equal responses by rounding, as a share of the responses."""
_FEWEST = 8
"""Minimum number of masks for estimates."""


@dataclass(frozen=True)
class Estimates:
    """Effects under random masks, beside other ablated components, with their uncertainty.

    Attributes:
        estimates: Effects without shrinkage, which the intervals surround, `(components,)`.
        intervals: 90 % interval of each effect, `(components, 2)`; NaN without an estimate.
        p_values: One-sided p-value of no harm, `(components,)`; 1 without an estimate.
        q_values: p-values after the correction of Benjamini and Hochberg: the share of false
            discoveries among this component and those with smaller p-values.
    """

    estimates: NDArray[np.float64]
    intervals: NDArray[np.float64]
    p_values: NDArray[np.float64]
    q_values: NDArray[np.float64]


@dataclass(frozen=True)
class Uncertainty(Estimates):
    """Uncertainty of the effect of each component.

    Attributes:
        frequency: Share of resamples with the component among the k most harmful, `(components,)`.
    """

    frequency: NDArray[np.float64]


def estimate(
    masks: NDArray[np.bool_], responses: NDArray[np.float64], strata: NDArray[np.intp] | None = None
) -> Estimates:
    """Estimates every effect beside the sure components.

    A component is sure if chance gives any component an effect this clear in fewer than one of 20
    cases. Sure components are selected one after another, the clearest effect beside the earlier
    ones first, while there are four masks for each. The estimate of a component is its coefficient
    in the least squares of the responses on itself and the sure components; interval and p-value
    are Student's. The estimates hold because masks are drawn at random: omitted components are
    nearly uncorrelated with included ones.

    Args:
        masks: 1 where a component was ablated, `(masks, components)`.
        responses: Mean response under each mask, `(masks,)`.
        strata: Stratum of each mask, `(masks,)`; only masks of the same stratum are compared. If
            some masks are larger by design, a component is more often in a large mask, and its
            effect would contain a part of the effects of the others. All masks are compared if
            None.
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
    """Resamples masks and tests every component.

    The rows of a mask share its ablation, so that masks and not rows are resampled: give the mean
    response of the rows of each mask. Each resample fits the recovery again, with the penalty
    chosen on all masks if the recovery has one (`penalty_`).

    Args:
        masks: 1 where a component was ablated, `(masks, components)`.
        responses: Mean response under each mask, `(masks,)`.
        recovery: The fitted recovery.
        k: Maximum number of components that are selected.
        seed: Seed of the resamples.
        resamples: Number of resamples.
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
    """Returns the recovery with its chosen penalty: resamples do not choose again."""
    from sklearn.base import clone

    penalty = getattr(recovery, "penalty_", None)
    fresh = clone(recovery)
    if penalty is not None and "penalty" in fresh.get_params():
        fresh.set_params(penalty=penalty)
    return fresh


def _estimated(
    matrix: NDArray[np.float64], y: NDArray[np.float64], groups: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Returns estimates of all components beside the sure ones, intervals and p-values of no harm.

    Masks and responses are differences from the means of `groups` groups.
    """
    sure: list[int] = []
    while True:
        columns = np.array(sorted(sure), dtype=np.intp)
        estimates, intervals, p_values = _least_squares(matrix, y, columns, groups)
        two_sided = 2 * np.minimum(p_values, 1 - p_values)
        two_sided[[*sure, *np.flatnonzero(~np.isfinite(intervals[:, 0]))]] = 1.0
        two_sided[estimates == 0] = 1.0  # an effect of zero is not clear
        clearest = int(np.argmin(two_sided))
        if two_sided[clearest] * len(two_sided) > _DOUBT or 4 * (len(sure) + 1) > len(y):
            return estimates, intervals, p_values
        sure.append(clearest)


def _least_squares(
    centered: NDArray[np.float64], target: NDArray[np.float64], sure: NDArray[np.intp], groups: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Fits least squares of the responses on each component and the sure ones.

    Returns:
        Estimates, intervals, and p-values of no harm.
    """
    from scipy import stats

    rows, count = centered.shape
    estimates, errors = np.zeros(count), np.full(count, np.nan)
    freedom = np.full(count, max(1, rows - 1 - groups - len(sure)))
    freedom[sure] += 1
    # residuals of the responses and of every other column after the sure ones
    basis = np.linalg.qr(centered[:, sure])[0] if len(sure) else np.zeros((rows, 0))
    residual = centered - basis @ (basis.T @ centered)
    unexplained = target - basis @ (basis.T @ target)
    remaining = unexplained @ unexplained
    weight = (residual**2).sum(axis=0)
    others = np.setdiff1d(np.flatnonzero(weight > 1e-8), sure)
    if rows >= _FEWEST and target.std() > 0:
        estimates[others] = residual[:, others].T @ unexplained / weight[others]
        squares = remaining - estimates[others] ** 2 * weight[others]
        errors[others] = np.sqrt(np.maximum(squares, 0) / freedom[others] / weight[others])
        if len(sure):
            inverse = np.linalg.pinv(centered[:, sure].T @ centered[:, sure])
            estimates[sure] = inverse @ centered[:, sure].T @ target
            errors[sure] = np.sqrt(remaining / freedom[sure] * np.maximum(np.diag(inverse), 0))
    total = target @ target
    if total > 0 and remaining <= _NOTHING * total:  # the sure ones explain everything
        estimates[others], errors[others] = 0.0, 0.0
    finite = np.isfinite(errors)
    half = stats.t.ppf((1 + LEVEL) / 2, freedom) * errors
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = np.where(finite, stats.t.cdf(estimates / errors, freedom), 1.0)
    p_values[finite & (errors == 0)] = (estimates[finite & (errors == 0)] >= 0).astype(float)
    return estimates, np.stack([estimates - half, estimates + half], axis=1), p_values
