"""Additivity of effects: how well a linear model predicts held-out masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDS = 5
_FEWEST = 20
"""Minimum number of masks: a fold then has four."""


@dataclass(frozen=True)
class Additivity:
    """How well effects add up.

    Attributes:
        explained: Share of the variance of held-out responses that the model explains; negative if
            it predicts worse than their mean.
        rank_correlation: Spearman correlation of predicted and measured responses.
        masks: Number of masks; each was held out once.
    """

    explained: float
    rank_correlation: float
    masks: int


def additivity(
    masks: NDArray[np.bool_], responses: NDArray[np.float64], recovery: Any, *, seed: int
) -> Additivity | None:
    """Predicts every mask from the masks of the other four fifths.

    The unexplained share contains the noise of the rows and the interactions of components: the
    fewer rows a mask has, the lower the explained share.

    Args:
        masks: 1 where a component was ablated, `(masks, components)`.
        responses: Mean response under each mask, `(masks,)`.
        recovery: A recovery; each fold fits a copy and chooses its own penalty.
        seed: Seed of the folds.

    Returns:
        None with fewer than 20 masks or if all responses are equal.
    """
    from scipy import stats
    from sklearn.base import clone

    y = np.asarray(responses, dtype=float)
    if len(y) < _FEWEST or y.std() == 0:
        return None
    fold = np.random.default_rng([seed, 0xADD]).permutation(len(y)) % FOLDS
    predicted = np.empty(len(y))
    for number in range(FOLDS):
        held = fold == number
        predicted[held] = clone(recovery).fit(masks[~held], y[~held]).predict(masks[held])
    explained = 1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    # without any effect the predictions differ only by the folds' means: they predict nothing
    correlation = stats.spearmanr(predicted, y).statistic if np.ptp(predicted) > 0 else 0.0
    return Additivity(float(explained), float(correlation), len(y))
