"""Public ground truth: planted problems with known answers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Measurement, Plan


@dataclass(frozen=True)
class PlantedProblem:
    """A simulated model whose true effects are known and add up.

    Attributes:
        effects: True effect of ablating each component alone, `(components,)`.
        planted: Columns of the components that matter, worst first.
        baseline: Response of the intact model.
        noise: Standard deviation of the response of one row.
        seed: Seed of the noise.
    """

    effects: NDArray[np.float64]
    planted: tuple[int, ...]
    baseline: float
    noise: float
    seed: int

    def means(self, masks: NDArray[np.bool_], scale: float = 0.0) -> NDArray[np.float64]:
        """Expected response under every mask, `(masks,)`, at least 0.

        Args:
            masks: True where a component is ablated, `(masks, components)`.
            scale: Gate of ablated components; the loss is linear in each gate.
        """
        return np.maximum(self.baseline + (1 - scale) * (masks @ self.effects), 0.0)

    def gradients(self, masks: NDArray[np.bool_], scale: float = 0.0) -> NDArray[np.float64]:
        """Exact gradient of the expected response with respect to the gates, `(masks, components)`.

        Args:
            masks: True where a component is ablated, `(masks, components)`.
            scale: Gate of ablated components.
        """
        return np.outer(self.means(masks, scale) > 0, -self.effects)

    def run(self, plan: Plan) -> Measurement:
        """Measures a plan like an executor: the expected response with noise for each row."""
        scale = plan.scale or 0.0
        # the noise of a row depends only on its mask and item: a repeated row has the same response
        noise = np.array([rng.normal() for rng in self.by_row(plan)])
        gradients = None
        if plan.gradients:
            slopes = self.gradients(plan.masks, scale).astype(np.float32)
            gradients = slopes[plan.mask_index]
        means = self.means(plan.masks, scale)[plan.mask_index]
        return Measurement(plan, means + self.noise * noise, gradients)

    def by_row(self, plan: Plan, *use: int) -> Iterator[np.random.Generator]:
        """Yields a generator for each row, seeded by its mask, its item and the purpose."""
        keys = plan.masks @ np.arange(1, plan.masks.shape[1] + 1)
        for mask, item in zip(plan.mask_index, plan.item_index, strict=True):
            yield np.random.default_rng([self.seed, int(keys[mask]), int(item), *use])


def planted_problem(
    *,
    components: int = 96,
    planted: int = 5,
    effect: float = 0.3,
    noise: float = 0.1,
    baseline: float = 1.0,
    seed: int = 0,
) -> PlantedProblem:
    """Makes a problem in which `planted` components matter and the others nearly do not.

    The planted effects fall from `effect` to half of it; the others are Gaussian with a standard
    deviation of a hundredth of it.

    Args:
        components: Number of components.
        planted: Number of components that matter.
        effect: The largest effect.
        noise: Standard deviation of one row's response.
        baseline: Response of the intact model.
        seed: Seed of all random draws.
    """
    rng = np.random.default_rng(seed)
    effects = rng.normal(0, effect / 100, components)
    columns = rng.choice(components, planted, replace=False)
    effects[columns] = -np.linspace(effect, effect / 2, planted)
    return PlantedProblem(effects, tuple(columns.tolist()), baseline, noise, seed)
