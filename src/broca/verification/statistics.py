"""Statistics of drops: intervals, tests, power, and random sets with which a set is compared.

Intervals and tests compare the same items before and after an ablation. Values are per-item scores;
higher is better, so that a drop is positive.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from broca.components import ComponentSet
from broca.measurement import Floats, Ints
from broca.results.base import Interval
from broca.results.verification import Standing

Values = Floats
Aggregate = Callable[[Values, Ints], float]
"""Returns a task's score from responses and the positions of their items among the measured
items."""

_EXACT_FLIPS = 12
"""Maximum number of changed items for which the permutation test enumerates all signs."""

_SIGNS = 9999
"""Number of assignments that the permutation test samples otherwise."""

_POWER = 0.8
"""Power that is enough."""

_EXCHANGES = 2000
"""Number of draws of the test of an aggregation other than the mean."""

CONTROLS = 39
"""Number of random sets of each kind, of which one may reach the real set at p 0.05."""

_NEIGHBOURS = 10
"""Number of components of nearest norm among which a replacement is drawn."""

_PATIENCE = 200
"""Number of consecutive draws without a new set after which fewer sets are accepted."""


def is_binary(*values: Values) -> bool:
    """Whether all values are 0 or 1 (or 0 or -1): a right/wrong metric."""
    pooled = np.concatenate(values)
    return bool(np.isin(pooled, (0.0, 1.0)).all() or np.isin(pooled, (0.0, -1.0)).all())


def bootstrap_drops(
    before: Values,
    after: Values,
    *,
    resamples: int = 2000,
    seed: int | Sequence[int] = 0,
    aggregate: Aggregate | None = None,
    floor: float = -math.inf,
) -> Values:
    """Returns the drops of resampled items, `(resamples,)`; before and after share the draw.

    Args:
        before: Scores of the items, `(items,)`.
        after: Scores of the same items with the set ablated, `(items,)`.
        resamples: Number of resamples.
        seed: Seed of the draws.
        aggregate: The task's own aggregation if it is not the mean.
        floor: Score of guessing, below which no skill is lost.
    """
    rng = np.random.default_rng(seed)
    count = len(before)
    if aggregate is None:
        pairs, kinds = np.unique(np.stack([before, after]), axis=1, return_inverse=True)
        # only the counts of each pair matter: exact, and fast if there are few pairs
        drawn = rng.multinomial(count, np.bincount(kinds.ravel()) / count, size=resamples)
        scores = drawn @ pairs.T / count
    else:
        samples = (rng.integers(count, size=count) for _ in range(resamples))
        of_both = ([aggregate(of[some], some) for of in (before, after)] for some in samples)
        scores = np.array(list(of_both))
    kept: Values = np.maximum(scores, floor)
    return kept[:, 0] - kept[:, 1]


def bootstrap_interval(
    before: Values,
    after: Values,
    *,
    level: float = 0.05,
    resamples: int = 2000,
    seed: int | Sequence[int] = 0,
    aggregate: Aggregate | None = None,
    p: float = 0.0,
) -> Interval:
    """Returns the drop with its paired percentile bootstrap interval; for `p` see `interval_of`.

    Where few items changed, such an interval is too short. It reaches at least as far as if a share
    of `1 - (level / 2) ** (1 / items)` of the items, the largest of which a sample may have none,
    deviated by the scores' range.
    """
    drops = bootstrap_drops(before, after, resamples=resamples, seed=seed, aggregate=aggregate)
    score = aggregate or (lambda values, _: float(np.mean(values)))
    every = np.arange(len(before))
    value = score(before, every) - score(after, every)
    least = unseen(before, after, level=level, aggregate=aggregate)
    return interval_of(float(value), drops, level=level, least=least, p=p)


def paired_drop(
    before: Values,
    after: Values,
    *,
    level: float = 0.05,
    resamples: int = 2000,
    seed: int | Sequence[int] = 0,
    aggregate: Aggregate | None = None,
) -> tuple[Interval, str, float]:
    """Returns a drop of scores from 0 to 1 with its interval, its test and the two-sided p-value.

    Zero is in the interval unless the test rejects it: a percentile interval alone is too short.
    """
    test, p = paired_test(before, after, seed=seed, aggregate=aggregate)
    drop = bootstrap_interval(
        before, after, level=level, resamples=resamples, seed=seed, aggregate=aggregate, p=p
    )
    return replace(drop, low=max(drop.low, -1.0), high=min(drop.high, 1.0)), test, p


def unseen(
    before: Values, after: Values, *, level: float, aggregate: Aggregate | None = None
) -> float:
    """Returns by how much items of which the sample has none may move the change of the score.

    It is the most that shares of such items, one share for each weight, can move it while a sample
    without them has a probability of `level / 2`: the items of largest weight have the largest
    shares.
    """
    span = 1.0 if is_binary(before, after) else float(np.ptp(np.concatenate([before, after])))
    weights, count = item_weights(aggregate, len(before)), np.arange(1, len(before) + 1)
    # the share of an item is 1 - kept / weight, where that is positive
    kept = np.exp((np.cumsum(np.log(weights)) + math.log(level / 2)) / count)
    return span * float(np.max((np.cumsum(weights) - count * kept)[kept <= weights]))


def item_weights(aggregate: Aggregate | None, count: int) -> Floats:
    """Returns the share of every item in a score, the largest first, `(items,)`.

    Args:
        aggregate: The aggregation of `count` items; None for the mean.
        count: Number of items.
    """
    every, weights = np.arange(count), np.zeros(count)
    if aggregate is not None:
        none = aggregate(weights, every)
        weights = np.array([aggregate(1.0 * (every == one), every) - none for one in every])
    weights = np.sort(weights[weights > 0])[::-1] if (weights > 0).any() else np.ones(count)
    shares: Floats = weights / weights.sum()
    return shares


def interval_of(
    value: float, draws: Values, *, level: float, reach: float = 0, least: float = 0, p: float = 0
) -> Interval:
    """Returns a value with the percentile interval of its bootstrap draws.

    Args:
        value: The value.
        draws: Its values on resampled items, `(resamples,)`.
        level: One minus the coverage of the interval.
        reach: Half the interval of a part that the draws hold constant; parts are independent.
        least: Smallest distance of the ends.
        p: P-value of zero, which the interval contains if the level does not exclude it.
    """
    low, high = np.quantile(draws, [level / 2, 1 - level / 2])
    low, high = min(low, value - least), max(high, value + least)
    if reach:
        low, high = value - math.hypot(value - low, reach), value + math.hypot(high - value, reach)
    if p > level:
        low, high = min(low, 0.0), max(high, 0.0)
    return Interval(float(value), float(low), float(high))


def mcnemar_exact(before: Values, after: Values) -> float:
    """Returns the two-sided p-value of McNemar's exact test on paired right/wrong scores."""
    from scipy import stats  # takes a second to import, and is needed at the end of a run

    lost = int(np.sum(before > after))
    gained = int(np.sum(before < after))
    if lost + gained == 0:
        return 1.0
    return float(stats.binomtest(lost, lost + gained, 0.5).pvalue)


def permutation_test(before: Values, after: Values, *, seed: int | Sequence[int] = 0) -> float:
    """Returns the two-sided p-value of the paired permutation test of equal means.

    The test flips signs of differences. With at most 12 changed items all assignments of signs are
    enumerated; otherwise 9,999 assignments are sampled, and the observed assignment is one of
    them.
    """
    difference = before - after
    difference = difference[difference != 0]
    if len(difference) == 0:
        return 1.0
    observed = abs(difference.sum())
    slack = 1e-12 * np.abs(difference).sum()  # sums in a different order differ in the last bits
    if len(difference) <= _EXACT_FLIPS:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(difference))))
        return float(np.mean(np.abs(signs @ difference) >= observed - slack))
    rng = np.random.default_rng(seed)
    reached = 0
    for start in range(0, _SIGNS, 1000):
        signs = rng.choice((-1.0, 1.0), size=(min(1000, _SIGNS - start), len(difference)))
        reached += int(np.sum(np.abs(signs @ difference) >= observed - slack))
    return (reached + 1) / (_SIGNS + 1)


def paired_test(
    before: Values, after: Values, *, seed: int | Sequence[int], aggregate: Aggregate | None
) -> tuple[str, float]:
    """Returns the test for the metric, and its two-sided p-value.

    That of an aggregation other than the mean exchanges both values of some items.
    """
    if aggregate is not None:
        every = np.arange(len(before))
        exchanged = np.random.default_rng(seed).random((_EXCHANGES, len(every))) < 0.5
        exchanged[0] = False  # the observed scores are one of the draws
        drops = [
            aggregate(np.where(some, after, before), every)
            - aggregate(np.where(some, before, after), every)
            for some in exchanged
        ]
        return "permutation", float(np.mean(np.abs(drops) >= abs(drops[0]) - 1e-9))
    if is_binary(before, after):
        return "mcnemar", mcnemar_exact(before, after)
    return "permutation", permutation_test(before, after, seed=seed)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment, which controls the family-wise error rate."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(factors * np.take(p_values, order))
    clipped: list[float] = np.minimum(adjusted, 1.0).tolist()
    return clipped


def power(items: int, drop: float, *, gained: float = 0.0, level: float = 0.05) -> float:
    """Returns the exact power of McNemar's exact test.

    Args:
        items: Number of paired items.
        drop: True drop of the accuracy, 0 to 1.
        gained: Share of items that change from wrong to right; a share of `drop + gained` changes
            from right to wrong.
        level: Level of the two-sided test.
    """
    from scipy import stats  # takes a second to import, and is needed at the end of a run

    lost = drop + gained
    changed = lost + gained
    if changed == 0:
        return 0.0
    counts = np.arange(1, items + 1)
    chance = stats.binom.pmf(counts, items, changed)
    counts, chance = counts[chance > 1e-12], chance[chance > 1e-12]
    # the largest count of the rarer direction at which the exact test rejects:
    # at one half, P(X <= c) + P(X >= n - c) = 2 P(X <= c)
    critical = stats.binom.ppf(level / 2, counts, 0.5)
    critical -= 2 * stats.binom.cdf(critical, counts, 0.5) > level
    rejected = stats.binom.cdf(critical, counts, lost / changed) + stats.binom.sf(
        counts - critical - 1, counts, lost / changed
    )
    return float(np.sum(chance * np.where(critical < 0, 0.0, rejected)))


def items_needed(drop: float, *, gained: float = 0.0, level: float = 0.05) -> int:
    """Returns the number of items from which the power stays at 0.8 or above.

    The power of an exact test decreases a little at some larger numbers; from the returned number
    on, it does not fall below that within the next fifth of items.
    """
    from scipy import stats  # takes a second to import, and is needed at the end of a run

    variance = drop + 2 * gained
    normal = stats.norm.ppf(1 - level / 2) + stats.norm.ppf(_POWER)
    start = max(4, math.ceil(0.5 * float(normal) ** 2 * variance / drop**2))
    last_short, number = start - 1, start
    while number <= last_short + max(4, last_short // 5):
        if power(number, drop, gained=gained, level=level) < _POWER:
            last_short = number
        number += 1
    return last_short + 1


def layer_matched(
    components: ComponentSet, columns: Sequence[int], *, count: int = CONTROLS, seed: int = 0
) -> Ints:
    """Draws random sets with as many members from each layer as the real set.

    Members of the real set are excluded. If its layers have other components for fewer than 78
    sets, components of the nearest layers are used.

    Args:
        components: All components.
        columns: The real set.
        count: Number of sets.
        seed: Seed of the draws.

    Returns:
        Columns of every set, `(sets, size)`; fewer sets, or none, if no more exist.
    """
    free = ~np.isin(np.arange(len(components)), columns)
    kinds = np.array([component.kind for component in components])
    layers = np.array([component.layer for component in components])
    counts = Counter((components[column].layer, components[column].kind) for column in columns)
    for reach in range(layers.max() + 1):
        pools = [
            (number, np.flatnonzero(free & (kinds == kind) & (np.abs(layers - layer) <= reach)))
            for (layer, kind), number in sorted(counts.items())
        ]
        if math.prod(math.comb(len(pool), number) for number, pool in pools) >= 2 * CONTROLS:
            break

    def draw(rng: np.random.Generator) -> list[int] | None:
        drawn: list[int] = []
        for number, pool in pools:
            candidates = np.setdiff1d(pool, drawn)
            if len(candidates) < number:
                return None
            drawn += rng.choice(candidates, number, replace=False).tolist()
        return drawn

    return _distinct(draw, count, len(columns), [seed, 1])


def norm_matched(
    norms: NDArray[np.floating],
    columns: Sequence[int],
    *,
    kinds: Sequence[str] = (),
    count: int = CONTROLS,
    seed: int = 0,
) -> Ints:
    """Draws random sets whose members have nearly the same output norms as those of the real set.

    The replacement of a member is drawn among the ten heads of any layer that have the nearest
    norms and are neither in the real set nor yet in the random set; among more heads if ten give
    fewer than 78 sets.

    Args:
        norms: Mean output norm of every component, `(components,)`.
        columns: The real set.
        kinds: Kind of every component if kinds differ: a head is replaced by a head only.
        count: Number of sets.
        seed: Seed of the draws.

    Returns:
        Columns of every set, `(sets, size)`; fewer sets, or none, if no more exist.
    """
    kind = np.array(kinds or [""] * len(norms))
    free = np.setdiff1d(np.arange(len(norms)), np.asarray(columns, dtype=np.intp))
    near = _NEIGHBOURS
    while near < len(free) and math.comb(near, len(columns)) < 2 * CONTROLS:
        near += 1

    def draw(rng: np.random.Generator) -> list[int] | None:
        drawn: list[int] = []
        for column in columns:
            candidates = free[~np.isin(free, drawn) & (kind[free] == kind[column])]
            if len(candidates) == 0:
                return None
            distances = np.abs(norms[candidates] - norms[column])
            nearest = candidates[np.argsort(distances, kind="stable")]
            drawn.append(int(rng.choice(nearest[:near])))
        return drawn

    return _distinct(draw, count, len(columns), [seed, 2])


def _distinct(
    draw: Callable[[np.random.Generator], list[int] | None], count: int, size: int, seed: list[int]
) -> Ints:
    """Draws until there are enough distinct sets, or no new one comes."""
    rng = np.random.default_rng(seed)
    sets: dict[tuple[int, ...], None] = {}
    failures = 0
    while len(sets) < count and failures < _PATIENCE:
        columns = draw(rng)
        known = len(sets)
        if columns is not None:
            sets[tuple(sorted(columns))] = None
        failures = 0 if len(sets) > known else failures + 1
    return np.array(list(sets), dtype=np.intp).reshape(len(sets), size)


def standing(value: float, others: Floats, reached: Sequence[bool]) -> Standing:
    """Returns the rank of a value among the values of random sets; larger is more.

    Args:
        value: The value of the real set.
        others: Values of the random sets.
        reached: Whether each random set reaches the real one; ties count against the real set, so
            that `p` is never too small.
    """
    count, rank = len(others), 1 + sum(reached)
    low, high = share_interval(count - rank + 1, count)
    spread, effect = float(np.std(others, ddof=1)) if count > 1 else 0.0, None
    if spread > 1e-12:
        away = (value - float(np.mean(others))) / spread
        half = 1.96 * math.sqrt(1 / count + away**2 / (2 * count))
        effect = Interval(away, away - half, away + half)
    return Standing(
        value, rank, rank / (count + 1), effect, Interval((count - rank + 1) / count, low, high)
    )


def share_interval(hits: int, count: int, *, level: float = 0.05) -> tuple[float, float]:
    """Returns the exact interval of a share by Clopper and Pearson (1934)."""
    from scipy.stats import beta

    low = beta.ppf(level / 2, hits, count - hits + 1) if hits else 0.0
    high = beta.ppf(1 - level / 2, hits + 1, count - hits) if hits < count else 1.0
    return float(low), float(high)


def behind(reached: int, sets: int, level: float, *, looks: int = 1) -> bool:
    """Whether more random sets than a share of `level` reach the real set, at `level / looks`."""
    return share_interval(reached, sets, level=2 * level / looks)[0] > level


def contrast_ends(
    task: Values, others: Sequence[Values], weights: Sequence[float], *, width: float
) -> tuple[float, float]:
    """Returns a mean difference minus the weighted mean of others', with a normal interval.

    A pseudo-item that deviates by 1 gives the interval of equal differences a width.

    Args:
        task: Differences of the task's items.
        others: Differences of the items of each other task.
        weights: Weights of the other tasks.
        width: Half width of the interval in standard errors.

    Returns:
        The difference, and half the width of its interval.
    """
    shares = np.asarray(weights) / (np.sum(weights) or 1.0)
    value, variance = float(task.mean()), (len(task) * task.var() + 1) / (len(task) + 1) / len(task)
    for share, items in zip(shares, others, strict=True):
        value -= share * float(items.mean())
        variance += share**2 * float(items.var() * len(items) + 1) / (len(items) + 1) / len(items)
    return value, width * math.sqrt(variance)
