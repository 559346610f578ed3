"""From the scores of items to a set of neurons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput

Scope = Literal["global", "layer"]
Aggregate = Literal["mean", "vote"]

Columns = NDArray[np.intp]
"""Neurons by their column, sorted."""


@dataclass(frozen=True)
class Rule:
    """Which neurons stand out.

    Attributes:
        sigma: Standard deviations above the mean that a score must exceed.
        scope: Whether mean and deviation are over all neurons, or over those of each layer.
        aggregate: `mean` applies the rule to the items' mean score; `vote` applies it to every item
            and keeps the neurons that enough items chose.
        share: With `vote`, the least share of items that must choose a neuron.
        count: Take the so many highest scores instead of those beyond sigma.

    Raises:
        BadInput: A value that does not exist.
    """

    sigma: float = 6.0
    scope: Scope = "global"
    aggregate: Aggregate = "mean"
    share: float = 0.5
    count: int | None = None

    def __post_init__(self) -> None:
        if self.scope not in get_args(Scope):
            raise BadInput(f"--scope '{self.scope}' is unknown: use global or layer")
        if self.aggregate not in get_args(Aggregate):
            raise BadInput(f"--aggregate '{self.aggregate}' is unknown: use mean or vote")
        if not np.isfinite(self.sigma):
            raise BadInput(f"--sigma must be a number, not {self.sigma}")
        if not 0 < self.share <= 1:
            raise BadInput(f"--share must lie above 0 and at most at 1, not {self.share:g}")
        if self.count is not None and self.count < 1:
            raise BadInput(f"--count must be at least 1, not {self.count}")


def standardized(
    scores: NDArray[np.floating], layers: NDArray[np.intp], scope: Scope
) -> NDArray[np.float64]:
    """Scores as standard deviations above their mean.

    Args:
        scores: `(neurons,)`.
        layers: Layer of every neuron, `(neurons,)`.
        scope: Over all neurons, or each layer by itself.
    """
    values = np.asarray(scores, dtype=np.float64)
    groups = np.zeros(len(values), dtype=np.intp) if scope == "global" else layers
    standard = np.zeros_like(values)
    for group in np.unique(groups):
        own = groups == group
        deviation = values[own].std()
        if deviation > 0:
            standard[own] = (values[own] - values[own].mean()) / deviation
    return standard


def item_set(scores: NDArray[np.floating], layers: NDArray[np.intp], rule: Rule) -> Columns:
    """The neurons that stand out in one vector of scores, sorted."""
    standard = standardized(scores, layers, rule.scope)
    if rule.count is not None:
        return np.sort(np.argsort(-standard, kind="stable")[: rule.count])
    return np.flatnonzero(standard > rule.sigma)


def data_set_scores(
    scores: NDArray[np.floating], layers: NDArray[np.intp], rule: Rule
) -> NDArray[np.float64]:
    """What a data set's neurons are chosen by: mean scores, or shares of votes, `(neurons,)`.

    Args:
        scores: Of every item, `(items, neurons)`.
        layers: Layer of every neuron, `(neurons,)`.
        rule: With `vote` and a count, every item votes for its so many highest.
    """
    if rule.aggregate == "mean":
        return np.asarray(scores.mean(axis=0), dtype=np.float64)
    votes = np.zeros(scores.shape[1])
    for one in scores:
        votes[item_set(one, layers, rule)] += 1
    return votes / len(scores)


def commonality_set(scores: NDArray[np.floating], layers: NDArray[np.intp], rule: Rule) -> Columns:
    """The neurons that a data set has in common, sorted.

    Args:
        scores: Of every item, `(items, neurons)`.
        layers: Layer of every neuron, `(neurons,)`.
        rule: Which stand out.
    """
    whole = data_set_scores(scores, layers, rule)
    if rule.aggregate == "mean":
        return item_set(whole, layers, rule)
    if rule.count is not None:
        order = np.argsort(-whole, kind="stable")[: rule.count]
        return np.sort(order[whole[order] > 0])
    return np.flatnonzero(whole >= rule.share)
