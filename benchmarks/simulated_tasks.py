"""Simulated tasks with the statistics of a published model: many small effects, or backups.

An answer is right if the margin of the item is above 0. A mask lowers the margin by the effects of
its components, which differ between items, and by their interactions. All sizes are in standard
deviations of the intact margin over items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Measurement, Plan, Response
from broca.searches import OtherTask, Problem

ITEMS = 100
"""Number of `locate` items, and of `confirm` items, of every task."""
REPORT_ITEMS = 2000
"""Number of `report` items of every task."""
SLOPE = 6.0
"""Slope of the probability in the margin."""
_APART = 10_000
"""Positions between the first items of two tasks."""


@dataclass(frozen=True)
class Effects:
    """The distribution of the effects of a simulated model's components.

    The default values were measured on stories260K with two paradigms of BLiMP that are used in the
    development of broca (experiments/LOG.md, 2026-11-23).

    Attributes:
        intact: Mean margin of the intact model; that of a task differs by up to `varies`.
        varies: Largest difference of a task's mean margin from it.
        spread: Standard deviation of the components' mean effects on a task.
        shared: Correlation of a component's effects on two tasks.
        item_spread: Standard deviation over items of a component's effect.
        interaction: Standard deviation over pairs of the interaction of two components, as a mean
            over items.
        item_interaction: Standard deviation over items of an interaction.
        backups: Number of pairs of components of which the second backs up the first.
        pair: Loss when both components of such a pair are ablated.
        alone: Loss when only the first is ablated; ablating only the second costs nothing.
    """

    intact: float = 0.66
    varies: float = 0.3
    spread: float = 0.065
    shared: float = 0.11
    item_spread: float = 0.21
    interaction: float = 0.008
    item_interaction: float = 0.045
    backups: int = 0
    pair: float = 0.9
    alone: float = 0.18


TASK_SCENARIOS: Mapping[str, Effects] = {"small": Effects(), "backups": Effects(backups=2)}
"""`small` has effects as on stories260K; `backups` has in addition two pairs of components that
back each other up."""


@dataclass
class SimulatedTasks:
    """A simulated model with a task to localize and other tasks.

    Attributes:
        effects: Distribution of its components' effects.
        components: Number of components.
        seed: Seed of all random draws.
        others: Number of other tasks.
        response: Response of plans that name none.
    """

    effects: Effects
    components: int
    seed: int
    others: int = 5
    response: Response = "accuracy"
    _margins: NDArray[np.float64] = field(init=False, repr=False)
    _alone: NDArray[np.float32] = field(init=False, repr=False)
    _factors: NDArray[np.float32] = field(init=False, repr=False)
    _pairs: NDArray[np.intp] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng([self.seed, 77])
        effects, tasks, items = self.effects, 1 + self.others, 2 * ITEMS + REPORT_ITEMS
        intact = effects.intact + rng.uniform(-effects.varies, effects.varies, (tasks, 1))
        self._margins = rng.normal(intact, 1.0, (tasks, items))
        common = rng.normal(0, np.sqrt(effects.shared), self.components)
        apart = rng.normal(0, np.sqrt(1 - effects.shared), (tasks, self.components))
        means = effects.spread * (common + apart)
        self._pairs = rng.permutation(self.components)[: 2 * effects.backups].reshape(-1, 2)
        means[0, self._pairs] = effects.alone, 0.0
        shape = (tasks, items, self.components)
        self._alone = rng.standard_normal(shape, np.float32) * effects.item_spread
        self._alone += means[:, None].astype(np.float32)
        # the interaction of two components is a product of two factors, so that its
        # standard deviation is the product of theirs
        of_items = rng.standard_normal((2, *shape), np.float32) * np.sqrt(effects.item_interaction)
        of_tasks = rng.normal(0, np.sqrt(effects.interaction), (2, tasks, 1, self.components))
        self._factors = of_items + of_tasks.astype(np.float32)

    def problem(self, rows: int, k: int) -> Problem:
        """Returns the problem of a search."""
        tasks = [
            OtherTask(f"task {number}", first + np.arange(ITEMS), first + ITEMS + np.arange(ITEMS))
            for number, first in enumerate(_APART * np.arange(1 + self.others))
        ]
        continuous = self.response == "probability"
        return Problem(
            components=self.components,
            items=tasks[0].items,
            k=k,
            rows=rows,
            seed=self.seed,
            confirm=tasks[0].confirm,
            others=tuple(tasks[1:]),
            continuous=continuous,
            differentiable=continuous,
        )

    def run(self, plan: Plan) -> Measurement:
        """Measures a plan, with the slopes in the gates if it requests them."""
        closed = plan.masks[plan.mask_index].astype(np.float64) * (1 - (plan.scale or 0.0))
        tasks, items = np.divmod(plan.item_index, _APART)
        margins, slopes = self._ablated(closed, tasks, items)
        probabilities = 1 / (1 + np.exp(-SLOPE * margins))
        if (plan.response or self.response) == "accuracy":
            return Measurement(plan, (margins > 0).astype(np.float64))
        slopes *= (SLOPE * probabilities * (1 - probabilities))[:, None]
        gradients = slopes.astype(np.float32) if plan.gradients else None
        return Measurement(plan, probabilities, gradients)

    def specific(self, columns: tuple[int, ...]) -> float:
        """Returns the specific drop of a set on the report items."""
        drops = self._drops(columns)
        return float(drops[0] - drops[1:].mean())

    def best(self, k: int) -> tuple[int, ...]:
        """Returns the best set of at most `k` members, by forward selection on the report items."""
        members: tuple[int, ...] = ()
        while len(members) < k:
            others = (column for column in range(self.components) if column not in members)
            grown = [(*members, column) for column in others]
            values = [self.specific(columns) for columns in grown]
            if max(values) <= self.specific(members):
                break
            members = grown[int(np.argmax(values))]
        return members

    def _drops(self, columns: tuple[int, ...]) -> NDArray[np.float64]:
        """Returns the drop of every task on the report items, `(tasks,)`."""
        report = slice(2 * ITEMS, None)
        intact, chosen = self._margins[:, report], list(columns)
        first, second = self._factors[:, :, report, chosen].sum(axis=-1)
        lost = self._alone[:, report, chosen].sum(axis=-1) + first * second
        lost[0] += self._extra * np.isin(self._pairs, chosen).all(axis=1).sum()
        drops: NDArray[np.float64] = ((intact > 0).mean(axis=1)) - (intact > lost).mean(axis=1)
        return drops

    @property
    def _extra(self) -> float:
        """Loss of a pair minus the loss of its first member."""
        return self.effects.pair - self.effects.alone

    def _ablated(
        self, closed: NDArray[np.float64], tasks: NDArray[np.intp], items: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the margins of rows and their slopes, `(rows,)` and `(rows, components)`.

        Args:
            closed: How far every gate is closed, from 0 to 1, `(rows, components)`.
            tasks: Index of every row's task.
            items: Index of every row's item in its task.
        """
        alone = self._alone[tasks, items]
        first, second = self._factors[:, tasks, items]
        of_first, of_second = (closed * first).sum(axis=1), (closed * second).sum(axis=1)
        margins = self._margins[tasks, items] - (closed * alone).sum(axis=1) - of_first * of_second
        slopes = alone + first * of_second[:, None] + second * of_first[:, None]
        to_localize = tasks == 0
        for column, backup in self._pairs:
            margins -= to_localize * self._extra * closed[:, column] * closed[:, backup]
            slopes[:, column] += to_localize * self._extra * closed[:, backup]
            slopes[:, backup] += to_localize * self._extra * closed[:, column]
        return margins, slopes
