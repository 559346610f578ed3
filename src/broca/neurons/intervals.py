"""Intervals of what the neuron verbs measure, by resampling items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from broca.results.base import Interval
from broca.verification import Trial
from broca.verification.statistics import bootstrap_interval, interval_of

RESAMPLES = 2000


def mean_interval(values: Sequence[float] | NDArray[np.floating], *, seed: int) -> Interval:
    """The mean of some values and its bootstrap interval; NaN values are left out.

    Where there are no others, the interval is NaN.
    """
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return Interval(float("nan"), float("nan"), float("nan"))
    return difference(known, np.zeros(len(known)), seed=seed)


def difference(first: NDArray[np.float64], second: NDArray[np.float64], *, seed: int) -> Interval:
    """The mean difference of paired values and its bootstrap interval."""
    return bootstrap_interval(first, second, seed=[seed, 11])


def lost(
    trial: Trial,
    name: str,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    *,
    seed: int,
) -> Interval:
    """What a task's score loses between responses to the same items, by its own aggregation."""
    aggregate = trial.aggregation(name, before)
    return bootstrap_interval(before, after, seed=[seed, 11], aggregate=aggregate)


def scored(trial: Trial, name: str, values: NDArray[np.float64], *, seed: int) -> Interval:
    """A task's score over responses, in its own direction, with its bootstrap interval."""
    sign = 1.0 if trial.benchmarks[name].higher_is_better else -1.0
    aggregate = trial.aggregation(name, values)
    if aggregate is None:
        return mean_interval(sign * values, seed=seed)
    rng = np.random.default_rng([seed, 11])
    draws = [rng.integers(len(values), size=len(values)) for _ in range(RESAMPLES)]
    scores = np.array([sign * aggregate(values[drawn], drawn) for drawn in draws])
    return interval_of(trial.score(name, values), scores)
