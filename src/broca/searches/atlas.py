"""Atlas: estimates every component's effect on every task, from the same random masks.

Every mask is measured on one item of each task. The losses of two tasks can then be compared mask
by mask, and resampling masks gives intervals of their differences too. An atlas is a screen of
single components; it does not test sets.

1. the intact model answers the items that will be used: their fixed effects;
2. a pilot over all tasks finds the share of components that masks ablate;
3. fresh masks, each on one item of every task;
4. the effects of all tasks by one regression, and again on masks drawn anew.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Measurement, Plan, Response
from broca.recovery import JointEffects, joint_effects
from broca.searches.base import GeneratorSearch
from broca.searches.pilot import pilot, spread_masks

ROWS_PER_TASK = 800
"""Rows for each task if no budget is given."""

FEWEST_ROWS = 200
"""Minimum number of rows for each task; with fewer, intervals are meaningless."""

_INTACT = 0.125
"""Share of the budget for the intact model."""

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AtlasProblem:
    """The problem of an atlas.

    Attributes:
        components: Number of components.
        tasks: Positions of every task's items in the bank, by its name.
        rows: Maximum number of rows, or None for 800 rows for each task.
        seed: Seed of all random draws.
        continuous: Whether every item has a margin and therefore a probability.
    """

    components: int
    tasks: Mapping[str, NDArray[np.intp]]
    rows: int | None
    seed: int
    continuous: bool = False


@dataclass(frozen=True, eq=False)
class MeasuredAtlas:
    """The measurements of an atlas, and the effects of every component on every task.

    Attributes:
        tasks: Names of the tasks, in the order of the problem.
        masks: The fresh masks, `(masks, components)`.
        changes: Response minus the intact response of the same item, `(masks, tasks)`.
        items: Number of items of each task that were used, `(tasks,)`.
        share: Share of components that a mask ablates, chosen by the pilot.
        joint: The effects, their resamples, and their fit.
    """

    tasks: tuple[str, ...]
    masks: Bools
    changes: Floats
    items: tuple[int, ...]
    share: float
    joint: JointEffects


class AtlasSearch(GeneratorSearch[MeasuredAtlas]):
    """Estimates the effect of every component on every task; its result is a `MeasuredAtlas`.

    Args:
        problem: The tasks.
        resamples: Number of resamples of the masks, for intervals.

    Raises:
        BadInput: The rows, the tasks or the resamples are too few.
    """

    def __init__(self, problem: AtlasProblem, *, resamples: int = 200) -> None:
        budget = self.budget(problem.rows, len(problem.tasks))
        if resamples < 20:
            raise BadInput(f"an atlas needs at least 20 resamples for an interval, not {resamples}")
        self._problem = problem
        self._rows_per_task = budget // len(problem.tasks)
        self._resamples = resamples
        self._rng = np.random.default_rng([problem.seed, 0xA71A5])
        self._response: Response | None = "probability" if problem.continuous else None
        self._spent = 0
        super().__init__(self._generate())

    @staticmethod
    def budget(rows: int | None, tasks: int) -> int:
        """Returns the maximum number of rows of the search.

        Raises:
            BadInput: The rows or the tasks are too few.
        """
        if tasks < 2:
            raise BadInput(f"an atlas compares tasks and needs at least two, not {tasks}")
        if rows is not None and rows < FEWEST_ROWS * tasks:
            raise BadInput(
                f"`rows` {rows} is too few for an atlas of {tasks} tasks: it needs "
                f"at least {FEWEST_ROWS * tasks}, {FEWEST_ROWS} for each; use more rows or fewer "
                "tasks"
            )
        return ROWS_PER_TASK * tasks if rows is None else rows

    def _generate(self) -> Generator[Plan, Measurement, MeasuredAtlas]:
        problem, rng = self._problem, self._rng
        most = max(4, int(_INTACT * self._rows_per_task))
        pools = [rng.permutation(items)[:most] for items in problem.tasks.values()]
        intact = yield from self._measure_intact(pools)
        decks = [_Deck(pool, rng) for pool in pools]

        def changes(masks: Bools) -> Generator[Plan, Measurement, Any]:
            items = np.stack([deck.draw(len(masks)) for deck in decks], axis=1)
            index = np.repeat(np.arange(len(masks)), len(decks))
            responses = yield from self._ask(masks, index, items.ravel())
            return responses.reshape(items.shape) - intact[items]

        size, _ = yield from pilot(
            changes, problem.components, masks=max(2, self._rows_per_task // 100), rng=rng
        )
        share = size / problem.components
        rows = (self._rows_per_task * len(decks) - self._spent) // len(decks)
        masks = spread_masks(
            share * problem.components, rows, np.arange(problem.components), problem.components, rng
        )
        changed = yield from changes(masks)
        return MeasuredAtlas(
            tasks=tuple(problem.tasks),
            masks=masks,
            changes=changed,
            items=tuple(len(pool) for pool in pools),
            share=share,
            joint=joint_effects(masks, changed, resamples=self._resamples, rng=rng),
        )

    def _measure_intact(self, pools: list[NDArray[np.intp]]) -> Generator[Plan, Measurement, Any]:
        """Measures the intact response of every bank position that will be used; others are NaN."""
        items = np.concatenate(pools)
        none = designs.intact(self._problem.components)
        responses = yield from self._ask(none, np.zeros(len(items), dtype=np.intp), items)
        intact = np.full(int(items.max()) + 1, np.nan)
        intact[items] = responses
        return intact

    def _ask(
        self, masks: Bools, index: NDArray[np.intp], items: NDArray[np.intp]
    ) -> Generator[Plan, Measurement, Floats]:
        plan = Plan(masks, index, items, response=self._response)
        self._spent += plan.cost
        measurement = yield plan
        return measurement.responses


class _Deck:
    """Deals a task's items equally often."""

    def __init__(self, items: NDArray[np.intp], rng: np.random.Generator) -> None:
        self._items, self._rng = items, rng
        self._queue: list[int] = []

    def draw(self, count: int) -> NDArray[np.intp]:
        while len(self._queue) < count:
            self._queue += self._rng.permutation(self._items).tolist()
        dealt, self._queue = self._queue[:count], self._queue[count:]
        return np.array(dealt, dtype=np.intp)
