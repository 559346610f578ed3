"""Simulated tasks that look like those of published models: many small effects, or stand-ins.

An item is answered rightly where its margin is above 0. A mask takes from the margin what its
components contribute, differently on every item, and what they contribute only together. All sizes
are in standard deviations of the intact margin over items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Measurement, Plan, Response
from broca.searches import OtherTask, Problem

ITEMS = 100
"""Items to search on, and as many to confirm on, of every task."""
REPORT_ITEMS = 2000
"""Items of every task that a set is valued on."""
SLOPE = 6.0
"""Of the probability in the margin."""
_APART = 10_000
"""Positions between the first items of two tasks."""


@dataclass(frozen=True)
class Effects:
    """How the effects of a simulated model's components are distributed.

    The values by default were measured on stories260K with two paradigms of BLiMP on which broca
    is developed (experiments/LOG.md, 2026-11-23).

    Attributes:
        intact: Mean margin of the intact model; a task's own differs by up to `varies`.
        varies: Largest difference of a task's mean margin from it.
        spread: Standard deviation of the components' mean effects on a task.
        shared: Correlation of a component's effects on two tasks.
        item_spread: Standard deviation over items of a component's effect.
        interaction: Standard deviation over pairs of what two components contribute only together,
            on the mean over items.
        item_interaction: The same, over items.
        backups: Pairs of components of which the second stands in for the first.
        pair: What such a pair costs together.
        alone: What the first of them costs alone; the second costs nothing.
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


TASK_SCENARIOS: Mapping[str, Effects] = {
    "small": Effects(),
    "backups": Effects(backups=2),
}
"""Effects as small and as many as on stories260K; besides them two pairs of which each member
stands in for the other."""


@dataclass
class SimulatedTasks:
    """A simulated model with one task to localize and others that it should leave alone.

    Attributes:
        effects: How its components' effects are distributed.
        components: Number of components.
        seed: Of everything random.
        others: Number of other tasks.
        response: What a row measures where its plan does not say.
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
        asked, tasks, items = self.effects, 1 + self.others, 2 * ITEMS + REPORT_ITEMS
        intact = asked.intact + rng.uniform(-asked.varies, asked.varies, (tasks, 1))
        self._margins = rng.normal(intact, 1.0, (tasks, items))
        common = rng.normal(0, np.sqrt(asked.shared), self.components)
        apart = rng.normal(0, np.sqrt(1 - asked.shared), (tasks, self.components))
        means = asked.spread * (common + apart)
        self._pairs = rng.permutation(self.components)[: 2 * asked.backups].reshape(-1, 2)
        means[0, self._pairs] = asked.alone, 0.0
        shape = (tasks, items, self.components)
        self._alone = rng.standard_normal(shape, np.float32) * asked.item_spread
        self._alone += means[:, None].astype(np.float32)
        # what two components contribute together is a product of two factors, so that its
        # standard deviation is the product of theirs
        of_items = rng.standard_normal((2, *shape), np.float32) * np.sqrt(asked.item_interaction)
        of_tasks = rng.normal(0, np.sqrt(asked.interaction), (2, tasks, 1, self.components))
        self._factors = of_items + of_tasks.astype(np.float32)

    def problem(self, rows: int, k: int) -> Problem:
        """What a search has to solve."""
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
        """The answers to a plan's rows, and the slopes in the gates where it asks for them."""
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
        """What a set costs the task beyond the mean of the others, on the report items."""
        drops = self._drops(columns)
        return float(drops[0] - drops[1:].mean())

    def best(self, k: int) -> tuple[int, ...]:
        """Members of the best set of at most `k`, by forward selection on the report items."""
        members: tuple[int, ...] = ()
        while len(members) < k:
            grown = [(*members, one) for one in range(self.components) if one not in members]
            values = [self.specific(columns) for columns in grown]
            if max(values) <= self.specific(members):
                break
            members = grown[int(np.argmax(values))]
        return members

    def _drops(self, columns: tuple[int, ...]) -> NDArray[np.float64]:
        """Loss of every task's score on the report items, `(tasks,)`."""
        report = slice(2 * ITEMS, None)
        intact, chosen = self._margins[:, report], list(columns)
        first, second = self._factors[:, :, report, chosen].sum(axis=-1)
        lost = self._alone[:, report, chosen].sum(axis=-1) + first * second
        lost[0] += self._extra * np.isin(self._pairs, chosen).all(axis=1).sum()
        drops: NDArray[np.float64] = ((intact > 0).mean(axis=1)) - (intact > lost).mean(axis=1)
        return drops

    @property
    def _extra(self) -> float:
        """What a pair costs beyond what its first member costs alone."""
        return self.effects.pair - self.effects.alone

    def _ablated(
        self, closed: NDArray[np.float64], tasks: NDArray[np.intp], items: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Margins of rows and their slopes in the gates, `(rows,)` and `(rows, components)`.

        Args:
            closed: How far every gate is closed, from 0 to 1, `(rows, components)`.
            tasks: Number of every row's task.
            items: Number of every row's item in its task.
        """
        alone = self._alone[tasks, items]
        first, second = self._factors[:, tasks, items]
        of_first, of_second = (closed * first).sum(axis=1), (closed * second).sum(axis=1)
        margins = self._margins[tasks, items] - (closed * alone).sum(axis=1) - of_first * of_second
        slopes = alone + first * of_second[:, None] + second * of_first[:, None]
        to_localize = tasks == 0
        for one, other in self._pairs:
            margins -= to_localize * self._extra * closed[:, one] * closed[:, other]
            slopes[:, one] += to_localize * self._extra * closed[:, other]
            slopes[:, other] += to_localize * self._extra * closed[:, one]
        return margins, slopes
