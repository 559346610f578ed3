"""Sets of neurons: selected by the scores of items, drawn at random, and compared."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.options import DrawOptions, RuleOptions
from broca.results.neurons import Overlap

Columns = NDArray[np.intp]
"""Neurons by their column, sorted."""

EMPTY: Columns = np.zeros(0, dtype=np.intp)
"""No neurons, or no items."""


def standardized(
    scores: NDArray[np.floating], layers: NDArray[np.intp], scope: str
) -> NDArray[np.float64]:
    """Returns scores in standard deviations above their mean.

    Args:
        scores: Scores, `(neurons,)`.
        layers: Layer of every neuron, `(neurons,)`.
        scope: `global` over all neurons, or `layer` within each layer.
    """
    values = np.asarray(scores, dtype=np.float64)
    groups = np.zeros(len(values), dtype=np.intp) if scope == "global" else layers
    standard = np.zeros_like(values)
    for group in np.unique(groups):
        members = groups == group
        deviation = values[members].std()
        if deviation > 0:
            standard[members] = (values[members] - values[members].mean()) / deviation
    return standard


def item_set(scores: NDArray[np.floating], layers: NDArray[np.intp], rule: RuleOptions) -> Columns:
    """Returns the neurons that stand out in a vector of scores, sorted."""
    standard = standardized(scores, layers, rule.scope)
    if rule.count is not None:
        return np.sort(np.argsort(-standard, kind="stable")[: rule.count])
    return np.flatnonzero(standard > rule.sigma)


def data_set_scores(
    scores: NDArray[np.floating], layers: NDArray[np.intp], rule: RuleOptions
) -> NDArray[np.float64]:
    """Returns the scores of a data set: mean scores, or shares of votes, `(neurons,)`.

    Args:
        scores: Scores of every item, `(items, neurons)`.
        layers: Layer of every neuron, `(neurons,)`.
        rule: The rule; with `vote` and a count, every item votes for that many of its highest
            scores.
    """
    if rule.aggregate == "mean":
        return np.asarray(scores.mean(axis=0), dtype=np.float64)
    votes = np.zeros(scores.shape[1])
    for item in scores:
        votes[item_set(item, layers, rule)] += 1
    return votes / len(scores)


def commonality_set(
    scores: NDArray[np.floating], layers: NDArray[np.intp], rule: RuleOptions
) -> Columns:
    """Returns the neurons that the items of a data set share, sorted; see `data_set_scores`."""
    aggregated = data_set_scores(scores, layers, rule)
    if rule.aggregate == "mean":
        return item_set(aggregated, layers, rule)
    if rule.count is not None:
        order = np.argsort(-aggregated, kind="stable")[: rule.count]
        return np.sort(order[aggregated[order] > 0])
    return np.flatnonzero(aggregated >= rule.share)


def random_sets(
    columns: Columns, layers: NDArray[np.intp], options: DrawOptions, *, seed: int
) -> list[Columns]:
    """Draws random sets that are disjoint from a set and of its size, or of its size in each layer.

    Args:
        columns: The set to match, whose members are not drawn.
        layers: Layer of every neuron, `(neurons,)`.
        options: How many sets are drawn, and what they match.
        seed: Seed of the run.

    Raises:
        BadInput: There are too few other neurons.
    """
    digest = zlib.crc32(np.sort(columns).tobytes())
    free = np.setdiff1d(np.arange(len(layers)), columns)
    pools = [(free, len(columns))]
    if options.matching == "layer":
        used, counts = np.unique(layers[columns], return_counts=True)
        pools = [
            (free[layers[free] == layer], int(count))
            for layer, count in zip(used, counts, strict=True)
        ]
    for pool, count in pools:
        if len(pool) < count:
            raise BadInput(
                f"{count} neurons are located and only {len(pool)} others are left to draw "
                "random ones from: raise `sigma` or lower `count`"
            )
    sets = []
    for draw in range(options.draws):
        rng = np.random.default_rng([seed, draw, digest])
        drawn = [rng.choice(pool, count, replace=False) for pool, count in pools]
        sets.append(np.sort(np.concatenate(drawn)))
    return sets


def shared(first: Columns, second: Columns, *, neurons: int) -> Overlap:
    """Compares two sets of a model's `neurons`; what is divided by an empty set is None."""

    def ratio(part: float, total: float) -> float | None:
        return part / total if total else None

    common = len(np.intersect1d(first, second))
    expected = len(first) * len(second) / neurons
    larger, total = max(len(first), len(second)), len(first) + len(second)
    return Overlap(
        common=common,
        of_first=ratio(common, len(first)),
        of_second=ratio(common, len(second)),
        of_larger=ratio(common, larger),
        iou=ratio(common, total - common),
        expected_of_larger=ratio(expected, larger),
        expected_iou=ratio(expected, total - expected),
    )
