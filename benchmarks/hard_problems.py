"""Planted problems with the troubles of real models: interactions, backups, saturation, noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Measurement, Plan
from broca.testing import PlantedProblem

_BLOCK = 512
"""Number of masks that are computed at once: thousands of components make large matrices."""
_LEAST_SLOPE = 0.004
"""Size of a slope below which its noise does not shrink further."""


@dataclass(frozen=True)
class HardProblem(PlantedProblem):
    """A simulated model whose effects are known but do not simply add up.

    Attributes:
        pairs: Columns of components that interact, `(pairs, 2)`.
        pair_effects: Effect of ablating both components minus the sum of their effects, `(pairs,)`.
        backups: Columns of each component's backups, whose common function is lost only when all of
            them are ablated; -1 for none, `(components, backups)`.
        saturates: Whether a response approaches 0 smoothly instead of being clipped at 0.
        binary: Whether a row is right or wrong, with the response as its probability.
        gradient_noise: Standard deviation of a row's slope relative to the slope itself, or to
            `_LEAST_SLOPE` if the slope is smaller.
    """

    pairs: NDArray[np.intp]
    pair_effects: NDArray[np.float64]
    backups: NDArray[np.intp]
    saturates: bool = False
    binary: bool = False
    gradient_noise: float = 0.0

    def means(self, masks: NDArray[np.bool_], scale: float = 0.0) -> NDArray[np.float64]:
        """Expected response under every mask, `(masks,)`."""

        def of(block: NDArray[np.bool_]) -> NDArray[np.float64]:
            total = self._total(self._lost(_closed(block, scale)))
            if self.saturates:
                # the same slope at the baseline, and never below 0
                return np.where(
                    total < self.baseline,
                    self.baseline * np.exp((total - self.baseline) / self.baseline),
                    total,
                )
            return np.maximum(total, 0.0)

        return _in_blocks(of, masks)

    def gradients(self, masks: NDArray[np.bool_], scale: float = 0.0) -> NDArray[np.float64]:
        """Exact gradient of the response with respect to the gates, `(masks, components)`."""

        def of(block: NDArray[np.bool_]) -> NDArray[np.float64]:
            closed = _closed(block, scale)
            lost = self._lost(closed)
            by_lost = np.tile(self.effects, (len(block), 1))
            for (first, second), effect in zip(self.pairs, self.pair_effects, strict=True):
                by_lost[:, first] += effect * lost[:, second]
                by_lost[:, second] += effect * lost[:, first]
            by_closed = by_lost.copy()
            for column in np.flatnonzero((self.backups >= 0).any(axis=1)).tolist():
                spares = [int(spare) for spare in self.backups[column] if spare >= 0]
                by_closed[:, column] -= by_lost[:, column] * (1 - closed[:, spares].prod(axis=1))
                for spare in spares:
                    group = closed[:, [column, *(other for other in spares if other != spare)]]
                    by_closed[:, spare] += by_lost[:, column] * group.prod(axis=1)
            total = self._total(lost)
            outer = np.where(total > 0, 1.0, 0.0)
            if self.saturates:
                outer = np.exp(np.minimum(total - self.baseline, 0) / self.baseline)
            slopes: NDArray[np.float64] = -by_closed * outer[:, None]
            return slopes

        return _in_blocks(of, masks)

    def _lost(self, closed: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the lost share of each component; 0 for a component with an intact backup."""
        lost = closed.copy()
        for spares in self.backups.T:
            backed = np.flatnonzero(spares >= 0)
            lost[:, backed] *= closed[:, spares[backed]]
        return lost

    def _total(self, lost: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the response before saturation and clipping, `(masks,)`."""
        together = lost[:, self.pairs[:, 0]] * lost[:, self.pairs[:, 1]] @ self.pair_effects
        total: NDArray[np.float64] = self.baseline + lost @ self.effects + together
        return total

    def run(self, plan: Plan) -> Measurement:
        """Measures a plan like an executor; items of binary rows are equally hard for all masks."""
        measured = super().run(plan)
        if measured.gradients is not None and self.gradient_noise:
            # slopes vary between items much more than responses
            slopes = measured.gradients
            spread = self.gradient_noise * np.maximum(np.abs(slopes), _LEAST_SLOPE)
            noise = np.stack([rng.normal(size=slopes.shape[1]) for rng in self.by_row(plan, 1)])
            return replace(measured, gradients=(slopes + spread * noise).astype(np.float32))
        if self.binary and not plan.gradients and plan.response in (None, "accuracy"):
            hard = [
                np.random.default_rng([self.seed, item]).random()
                for item in plan.item_index.tolist()
            ]
            means = self.means(plan.masks, plan.scale or 0.0)[plan.mask_index]
            return Measurement(plan, (np.array(hard) < means).astype(float))
        return measured


def _in_blocks(
    function: Callable[[NDArray[np.bool_]], NDArray[np.float64]], masks: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Returns the values of a function of masks, of a block of them at a time."""
    starts = range(0, len(masks), _BLOCK)
    return np.concatenate([function(masks[at : at + _BLOCK]) for at in starts])


def _closed(masks: NDArray[np.bool_], scale: float) -> NDArray[np.float64]:
    """Returns how far every gate is closed, `(masks, components)`."""
    return np.where(masks, 1 - scale, 0.0).astype(np.float64)


def hard_problem(
    *,
    components: int = 96,
    planted: int = 5,
    effect: float = 0.3,
    noise: float = 0.1,
    seed: int = 0,
    moderate: int = 0,
    pairs: int = 0,
    redundant: int = 0,
    redundancy: int = 1,
    saturates: bool = False,
    binary: bool = False,
    gradient_noise: float = 0.0,
) -> HardProblem:
    """Makes a problem like `broca.testing.planted_problem`, with what makes it hard.

    Args:
        components: Number of components.
        planted: Number of components that matter.
        effect: The largest effect.
        noise: Standard deviation of one row's response.
        seed: Seed of all random draws.
        moderate: Number of components with moderate effects, a heavy tail (exponential, a tenth of
            `effect` on average, at most a third of it).
        pairs: Interactions between random planted or moderate components, Gaussian with a fifth of
            `effect`.
        redundant: Number of planted components that have backups; ablating any one of a group alone
            has little effect.
        redundancy: Number of backups of each of these components.
        saturates: Whether responses approach 0 smoothly.
        binary: Whether rows are right or wrong.
        gradient_noise: Standard deviation of a row's slopes relative to the slopes themselves.
    """
    rng = np.random.default_rng(seed)
    effects = rng.normal(0, effect / 100, components)
    columns = rng.choice(components, planted, replace=False)
    effects[columns] = -np.linspace(effect, effect / 2, planted)
    unplanted = np.setdiff1d(np.arange(components), columns)
    tail = rng.choice(unplanted, moderate, replace=False) if moderate else np.zeros(0, np.intp)
    effects[tail] = -np.minimum(rng.exponential(effect / 10, moderate), effect / 3)
    backups = np.full((components, redundancy), -1, dtype=np.intp)
    if redundant:
        spare = rng.choice(np.setdiff1d(unplanted, tail), redundant * redundancy, replace=False)
        backups[columns[:redundant]] = spare.reshape(redundant, redundancy)
    matter = np.concatenate([columns, tail])
    chosen = np.array([rng.choice(matter, 2, replace=False) for _ in range(pairs)], dtype=np.intp)
    return HardProblem(
        effects,
        tuple(columns.tolist()),
        1.0,
        noise,
        seed,
        pairs=chosen.reshape(-1, 2),
        pair_effects=rng.normal(0, effect / 5, pairs),
        backups=backups,
        saturates=saturates,
        binary=binary,
        gradient_noise=gradient_noise,
    )
