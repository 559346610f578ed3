"""Selects neurons by the scores of items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broca.options import RuleOptions

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
    """Returns the neurons that the items of a data set share, sorted.

    Args:
        scores: Scores of every item, `(items, neurons)`.
        layers: Layer of every neuron, `(neurons,)`.
        rule: The rule by which neurons are selected.
    """
    aggregated = data_set_scores(scores, layers, rule)
    if rule.aggregate == "mean":
        return item_set(aggregated, layers, rule)
    if rule.count is not None:
        order = np.argsort(-aggregated, kind="stable")[: rule.count]
        return np.sort(order[aggregated[order] > 0])
    return np.flatnonzero(aggregated >= rule.share)
