"""Effects with intervals, and the selection by them, for several methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST = 0.01
"""Share of the largest effect below which an effect counts as none."""

_ROUNDING = 1e-9
"""Effects below this are rounding errors."""


def mean_with_interval(
    samples: NDArray[np.floating],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns means and their 90 % intervals by Student's t.

    Args:
        samples: Estimates of every effect, `(samples, components)`.

    Returns:
        Means `(components,)` and intervals `(components, 2)`; NaN for a single sample.
    """
    from scipy.stats import t

    values = np.asarray(samples, dtype=np.float64)
    count, mean = len(values), values.mean(axis=0)
    if count < 2:
        return mean, np.full((len(mean), 2), np.nan)
    half = t.ppf(0.95, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return mean, np.stack([mean - half, mean + half], axis=1)


def harmful(
    effects: NDArray[np.float64],
    intervals: NDArray[np.float64],
    k: int,
    *,
    reason: str,
) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Selects at most k significantly harmful components: their interval lies below zero.

    Effects below a hundredth of the largest effect are not selected either, because many exact
    samples make any effect significant.

    Returns:
        The order, the selection first; the selection; and `reason` if it is empty (else "").
    """
    rated = np.argsort(effects, kind="stable")
    least = max(_ROUNDING, LEAST * float(np.abs(effects).max()))
    # an effect without an interval is taken as exact
    upper = np.where(np.isnan(intervals[:, 1]), effects, intervals[:, 1])
    selected = tuple(int(c) for c in rated if effects[c] <= -least and upper[c] < 0)[:k]
    others = (int(column) for column in rated if column not in set(selected))
    return (*selected, *others), selected, "" if selected else reason
