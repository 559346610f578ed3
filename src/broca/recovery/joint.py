"""Effects of the same masks on several responses at once, with shared resamples."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from broca.measurement import Bools, Floats

Z = 1.645
"""Half-width of a 90 % interval in standard deviations."""

FEW = 4
"""With fewer masks per component, cross-validation chooses the penalty."""

_LIGHT = 0.1
"""Penalty with more: of masks of one component each, 1 would shrink the effects by a quarter."""
_PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class JointEffects:
    """Effects of every component on every response.

    Attributes:
        effects: Effects, `(responses, components)`.
        resampled: Effects from resampled masks, `(resamples, responses, components)`.
        explained: Explained share of each response's variance on held-out masks, `(responses,)`,
            by the penalty that explains most of it; negative if none predicts it better than the
            mean. Effects that are not shrunk may predict worse, since they keep all their noise.
        penalty: Ridge penalty, added to the diagonal.
        shrunk: Whether cross-validation chose the penalty because masks were few: the effects are
            then too small, and the intervals cover only the noise.
    """

    effects: Floats
    resampled: Floats
    explained: Floats
    penalty: float
    shrunk: bool


def joint_effects(
    masks: Bools, responses: Floats, *, resamples: int, rng: np.random.Generator
) -> JointEffects:
    """Fits a ridge regression of all responses on the same masks, and on resampled masks.

    With at least `FEW` masks per component the penalty is so small that it hardly shrinks the
    effects. Sparse regressions shrink them, and their intervals then miss the true effects.

    Args:
        masks: True for ablated components, `(masks, components)`.
        responses: Responses under each mask, `(masks, responses)`.
        resamples: Number of resamples of the masks, with replacement; all responses share them.
        rng: Generator of the resamples.
    """
    from sklearn.linear_model import Ridge  # takes a second to import
    from sklearn.model_selection import PredefinedSplit

    matrix, y = np.asarray(masks, dtype=float), np.asarray(responses, dtype=float)
    folds = PredefinedSplit(rng.permutation(len(matrix)) % _FOLDS)
    shrunk = len(matrix) < FEW * matrix.shape[1]
    explained = {tried: _explained(Ridge(tried), matrix, y, folds) for tried in _PENALTIES}
    best = max(_PENALTIES, key=lambda tried: float(explained[tried].mean()))
    penalty = best if shrunk else _LIGHT
    count = len(matrix)
    drawn = [np.arange(count), *(rng.integers(count, size=count) for _ in range(resamples))]
    # of a single response, scikit-learn returns a vector
    effects, *resampled = (
        np.atleast_2d(Ridge(penalty).fit(matrix[rows], y[rows]).coef_) for rows in drawn
    )
    return JointEffects(
        effects, np.stack(resampled), np.max(list(explained.values()), axis=0), penalty, shrunk
    )


def interval(values: Floats, resampled: Floats) -> tuple[Floats, Floats]:
    """Returns the 90 % interval of each value; the first axis of `resampled` counts resamples."""
    half = Z * resampled.std(axis=0)
    return values - half, values + half


def highest(values: Floats, resampled: Floats) -> Floats:
    """Returns simultaneous 95 % upper bounds of all components.

    Among hundreds of components, noise makes some look harmful. The bounds use the largest
    standardized deviation over the components in each resample.

    Args:
        values: Estimates, `(..., components)`.
        resampled: Estimates from resamples, `(resamples, ..., components)`.
    """
    spread = resampled.std(axis=0)
    safe = np.where(spread > 0, spread, 1.0)
    largest = ((values - resampled) / safe).max(axis=-1)
    critical = np.quantile(largest, 0.95, axis=0)
    ends: Floats = values + critical[..., None] * spread
    return ends


def _explained(ridge: Any, matrix: Floats, y: Floats, folds: Any) -> Floats:
    """Returns the explained share of the variance on held-out masks for each response."""
    from sklearn.model_selection import cross_val_predict

    missed = y - cross_val_predict(ridge, matrix, y, cv=folds).reshape(y.shape)
    total = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    return np.where(total > 0, 1 - (missed**2).sum(axis=0) / np.maximum(total, 1e-300), 0.0)
