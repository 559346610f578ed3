"""Effects of the same masks on several responses at once, with resamples that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Z = 1.645
"""Standard deviations on either side of a 90 % interval."""

FEW = 4
"""Masks for each component below which the penalty is chosen by cross-validation."""

_LIGHT = 1.0
_PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_FOLDS = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointEffects:
    """Effects of every component on every response.

    Attributes:
        effects: `(responses, components)`.
        resampled: The same on masks drawn anew, `(resamples, responses, components)`.
        explained: Share of each response's variance that effects found on other masks explain,
            `(responses,)`; below zero where they mislead.
        penalty: What was added to the diagonal.
        shrunk: Whether the masks were so few that the penalty was chosen by cross-validation:
            effects are then too small, and intervals cover the noise alone.
    """

    effects: Floats
    resampled: Floats
    explained: Floats
    penalty: float
    shrunk: bool


def joint_effects(
    masks: NDArray[np.bool_], responses: Floats, *, resamples: int, rng: np.random.Generator
) -> JointEffects:
    """Ridge regression of all responses on the same masks, repeated on masks drawn anew.

    Where there are `FEW` masks for each component the penalty is so light that it takes next to
    nothing from the effects: sparse regressions shrink, and their intervals then miss the truth.

    Args:
        masks: True where a component was ablated, `(masks, components)`.
        responses: `(masks, responses)`.
        resamples: How often the masks are drawn anew, with replacement, for all responses alike.
        rng: Draws them.
    """
    matrix, y = np.asarray(masks, dtype=float), np.asarray(responses, dtype=float)
    folds = rng.permutation(len(matrix)) % _FOLDS
    shrunk = len(matrix) < FEW * matrix.shape[1]
    penalties = _PENALTIES if shrunk else (_LIGHT,)
    explained = {tried: _explained(matrix, y, folds, tried) for tried in penalties}
    penalty = max(penalties, key=lambda tried: float(explained[tried].mean()))
    drawn = [rng.integers(len(matrix), size=len(matrix)) for _ in range(resamples)]
    return JointEffects(
        _ridge(matrix, y, penalty)[0],
        np.stack([_ridge(matrix[rows], y[rows], penalty)[0] for rows in drawn]),
        explained[penalty],
        penalty,
        shrunk,
    )


def interval(values: Floats, resampled: Floats) -> tuple[Floats, Floats]:
    """90 % interval of each value from its resamples, which have one axis more, the first."""
    half = Z * resampled.std(axis=0)
    return values - half, values + half


def highest(values: Floats, resampled: Floats) -> Floats:
    """Upper ends that hold for all components together, at 95 %.

    The noise of hundreds of components makes some of them look harmful. The largest of their
    deviations over the resamples, each in its own standard deviations, says how far.

    Args:
        values: `(..., components)`.
        resampled: `(resamples, ..., components)`.
    """
    spread = resampled.std(axis=0)
    safe = np.where(spread > 0, spread, 1.0)
    largest = ((values - resampled) / safe).max(axis=-1)
    critical = np.quantile(largest, 0.95, axis=0)
    ends: Floats = values + critical[..., None] * spread
    return ends


def _ridge(matrix: Floats, y: Floats, penalty: float) -> tuple[Floats, Floats]:
    """Coefficients `(responses, components)` and intercepts, by the smaller system of equations."""
    center, level = matrix.mean(axis=0), y.mean(axis=0)
    x, residual = matrix - center, y - level
    rows, columns = x.shape
    if columns <= rows:
        coefficients = np.linalg.solve(x.T @ x + penalty * np.eye(columns), x.T @ residual)
    else:
        coefficients = x.T @ np.linalg.solve(x @ x.T + penalty * np.eye(rows), residual)
    return coefficients.T, level - center @ coefficients


def _explained(matrix: Floats, y: Floats, folds: NDArray[np.intp], penalty: float) -> Floats:
    """Share of the variance on held-out masks that is explained, response by response."""
    left = np.empty_like(y)
    for fold in range(_FOLDS):
        out = folds == fold
        effects, intercept = _ridge(matrix[~out], y[~out], penalty)
        left[out] = y[out] - matrix[out] @ effects.T - intercept
    total = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    shares: Floats = np.where(total > 0, 1 - (left**2).sum(axis=0) / np.maximum(total, 1e-300), 0.0)
    return shares
