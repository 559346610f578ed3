"""Measures sets of components on the task and on the others, and counts the rows."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Measurement, Plan, Response
from broca.searches.base import OtherTask, Problem

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
PlanGenerator = Generator[Plan, Measurement, Any]
"""Yields plans, is sent their measurements, and returns a result."""
ItemUse = Literal["items", "confirm"]
"""Items for the search, or items for its decisions."""

ROWS_PER_TASK = 800
"""Rows for each measured task, the claimed task and the others, if no budget is given."""
GOING_ON = 4
"""Factor up to which a search without an answer extends its default budget."""
_FEWEST_ROWS = 300
"""Minimum number of rows without other tasks; twice as many with them."""
_DOUBT = 30
"""Weight, in rows, of the prior that an item's response repeats under masks."""
_IMAGINED = 0.5
"""Standard deviation of a pseudo-item that is added to the measured items, because a few items may
agree by chance."""


def budget_of(problem: Problem, method: str) -> int:
    """Returns the row budget of a method: the given one, or the method's own.

    Raises:
        BadInput: The rows are too few.
    """
    budget = problem.rows
    if budget is None:
        budget = ROWS_PER_TASK * (1 + len(problem.others))
    fewest = _FEWEST_ROWS * (2 if problem.others else 1)
    if budget < fewest:
        raise BadInput(
            f"`rows` {budget} is too few for {method}: it needs {fewest} at least; use more rows "
            "or another method"
        )
    return budget


@dataclass(frozen=True)
class Observed:
    """Masks, and their losses on rows of the task and of the others.

    Attributes:
        masks: The masks, `(masks, components)`.
        losses: Losses of the task for each mask, then losses of the others for the first masks,
            `(rows,)`.
        items: Items of these rows, `(rows,)`.
        part: Part of the items, whose rows have the same noise: rows of `items` measure the
            search's response, rows of `confirm` the tasks' own metrics.
    """

    masks: Bools
    losses: Floats
    items: NDArray[np.intp]
    part: ItemUse


@dataclass(frozen=True)
class SetDrops:
    """Drops of sets on the same rows: of the task, and of the others in turn.

    Attributes:
        task: Drops of the task, `(sets, rows)`.
        others: Drops of the others, `(sets, rows)`; zero without other tasks.
        weight: Weight of a drop of the others.
        items: The task's item of every row, `(rows,)`. If rows outnumber the items, items repeat,
            and a repeated item adds no evidence about other items.
    """

    task: Floats
    others: Floats
    weight: float
    items: NDArray[np.intp]

    @classmethod
    def of_none(cls, sets: int, weight: float) -> SetDrops:
        """Returns a table of `sets` sets without rows."""
        empty = np.zeros((sets, 0))
        return cls(empty, empty, weight, np.zeros(0, dtype=np.intp))

    def specific(self, row: int) -> Floats:
        """Returns the specific drops of a set, row by row."""
        drops: Floats = self.specifics()[row]
        return drops

    def specifics(self) -> Floats:
        """Returns the specific drops of all sets, `(sets, rows)`."""
        return self.task - self.weight * self.others

    def harmful(self, least: float) -> Bools:
        """Whether each set does specific harm of at least `least`, `(sets,)`."""
        specifics = self.specifics()
        variances, items = self._spread(specifics)
        specific = specifics.mean(axis=1) - 1.645 * np.sqrt(variances / items) > 0
        harmful: Bools = (self.task.mean(axis=1) >= least) & specific
        return harmful

    def pick(self, sets: slice | NDArray[np.intp]) -> SetDrops:
        """Returns the table of some of the sets."""
        return replace(self, task=self.task[sets], others=self.others[sets])

    def joined(self, later: SetDrops) -> SetDrops:
        """Returns the table of the sets with more rows."""
        return replace(
            self,
            task=np.hstack([self.task, later.task]),
            others=np.hstack([self.others, later.others]),
            items=np.concatenate([self.items, later.items]),
        )

    def interval(self, row: int) -> tuple[float, float, float]:
        """Returns the effect of a set on the task with its 90 % interval: low, effect, high."""
        drops = self.task[row : row + 1]
        effect, half = 0.0 - float(drops.mean()), 1.645 * float(self.errors(drops)[0])
        return effect - half, effect, effect + half

    def errors(self, drops: Floats) -> Floats:
        """Returns the standard errors of mean drops, `(sets,)`.

        A pseudo-item is added to the measured items, so that equal responses still have a variance.
        """
        variances, items = self._spread(drops)
        errors: Floats = np.sqrt((variances * items + _IMAGINED**2) / (items + 1) / items)
        return errors

    def _spread(self, drops: Floats) -> tuple[Floats, int]:
        """Returns the variance over items and their number; rows of an item are clustered.

        The estimate is cluster-robust: without repeated items it is the variance of rows; if the
        rows of an item agree, it is the variance of items; otherwise it lies between.
        """
        items = np.unique(self.items)
        rows = (self.items[:, None] == items).astype(float)
        sums = (drops - drops.mean(axis=1, keepdims=True)) @ rows
        return np.square(sums).sum(axis=1) * len(items) / drops.shape[1] ** 2, len(items)


class _Level:
    """Predicts an item's response under masks from its intact response.

    The prediction uses a share of the intact response: 1 for a deterministic response, 0 for noise,
    which would only be added by a subtraction. The share is the slope of the response under masks
    on the intact response, and 1 until it is known.

    Args:
        intact: Intact responses of a task's items.
    """

    def __init__(self, intact: Floats) -> None:
        self.mean, self._variance = float(intact.mean()), float(intact.var())
        self._rows, self._products = 0, 0.0

    def predict(self, intact: Floats, responses: Floats) -> Floats:
        """Predicts the responses of rows without an ablation, `(rows,)`."""
        self._rows += len(intact)
        self._products += float((intact - self.mean) @ (responses - responses.mean()))
        slope = 1.0
        if self._variance > 0:
            weight = self._rows / (self._rows + _DOUBT)
            slope += weight * (self._products / (self._rows * self._variance) - 1.0)
        predicted: Floats = self.mean + np.clip(slope, 0.0, 1.0) * (intact - self.mean)
        return predicted


@dataclass
class Measuring:
    """Measures masks on the task and on the others, as losses from the intact model.

    Attributes:
        problem: The problem that is solved.
        budget: Maximum number of rows.
        weight: Weight of a drop of the others.
        stop: Whether stages may end before their rows are spent, once the answer is stable.
        rows: Number of rows so far.
        enough: Reasons for which rows were not spent.
        observed: Losses of masks, in the order of measurement.
        rng: Generator of all random draws.
        response: Response of screening and joint rounds; None for the task's own metric.
    """

    problem: Problem
    budget: int
    weight: float = 1.0
    stop: bool = True
    rows: int = 0
    enough: list[str] = field(default_factory=list)
    observed: list[Observed] = field(default_factory=list)
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.problem.seed, 0xF0C5])
        self.response: Response | None = "probability" if self.problem.continuous else None
        self._intact: dict[int, float] = {}
        self._confirm_intact: dict[int, float] = {}
        self._levels: dict[str, _Level] = {}
        self._queues: dict[tuple[str, str], list[int]] = {}
        self._turn = 0
        problem = self.problem
        tasks = (OtherTask("", problem.items, problem.confirm), *problem.others)
        self._pools = {
            "items": {task.name: task.items for task in tasks},
            # if no items were set aside, those of the search are used
            "confirm": {
                task.name: task.confirm if len(task.confirm) else task.items for task in tasks
            },
        }

    @property
    def rows_left(self) -> int:
        """Number of rows of the budget that are not spent."""
        return self.budget - self.rows

    def forgo(self, rows: int, why: str) -> None:
        """Removes rows from the budget, so that no later stage spends them.

        Args:
            rows: Number of rows.
            why: Why they are not needed.
        """
        self.budget -= rows
        self.enough.append(why)

    def allow(self, rows: int) -> None:
        """Extends the budget by some rows."""
        self.budget = self.rows + rows

    @property
    def intact_level(self) -> float:
        """Mean intact response of the task."""
        return self._levels[""].mean

    def bundle_rows(self, size: int) -> int:
        """Returns the number of rows of a bundle: of the task, and as many of the others if any."""
        return size * (2 if self.problem.others else 1)

    def measure_intact(self, rows: int) -> PlanGenerator:
        """Measures the intact model on the items of screening, which gives their fixed effects."""
        pools = self._pools["items"] = self._drawn("items", rows)
        items = np.concatenate(list(pools.values()))
        none = designs.intact(self.problem.components)
        responses = yield from self._ask(none, np.zeros(len(items), dtype=np.intp), items)
        self._intact = dict(zip(items.tolist(), responses.tolist(), strict=True))
        self._levels = {
            name: _Level(np.array([self._intact[item] for item in pool.tolist()]))
            for name, pool in pools.items()
        }

    def drops(self, masks: Bools) -> PlanGenerator:
        """Measures the loss of the task for every mask on one item, `(masks,)`."""
        names = [""] * len(masks)
        items = self._next_items(names, "items")
        responses = yield from self._ask(masks, np.arange(len(masks)), items)
        lost = self._lost(names, items, responses)
        self.observed.append(Observed(masks, lost, items, "items"))
        return lost

    def bundles(self, masks: Bools, size: int) -> PlanGenerator:
        """Measures the mean drop of every mask over some items, of the task and of the others.

        Returns:
            Two vectors `(masks,)`, the second zero without other tasks, and the standard error of a
            specific drop, pooled over the masks (NaN for bundles of one).
        """
        names: list[str] = []
        for _ in masks:
            names += [""] * size
            if self.problem.others:
                names += [self._next_other() for _ in range(size)]
        items = self._next_items(names, "items")
        index = np.repeat(np.arange(len(masks)), self.bundle_rows(size))
        responses = yield from self._ask(masks, index, items)
        rows = self._lost(names, items, responses).reshape(len(masks), -1, size)
        task_first = items.reshape(len(masks), -1, size).swapaxes(0, 1).ravel()
        self.observed.append(
            Observed(
                np.repeat(masks, size, axis=0), rows.swapaxes(0, 1).ravel(), task_first, "items"
            )
        )
        spread = rows.var(axis=2, ddof=1).mean(axis=0) if size > 1 else np.full(2, np.nan)
        counted = spread[0] + self.weight**2 * spread[1:].sum()
        lost = rows.mean(axis=2)
        others = lost[:, 1] if self.problem.others else np.zeros(len(masks))
        return lost[:, 0], others, float(np.sqrt(counted / size))

    def crossed(self, masks: Bools, items: int) -> PlanGenerator:
        """Measures the drops of masks on the same fresh items, in the task's own metric."""
        names = [""] * items
        if self.problem.others:
            names += [self._next_other() for _ in range(items)]
        drawn = self._next_items(names, "confirm")
        every = np.vstack([designs.intact(masks.shape[1]), masks])
        index = np.repeat(np.arange(len(every)), len(drawn))
        responses = yield from self._ask(
            every, index, np.tile(drawn, len(every)), response="accuracy"
        )
        table = responses.reshape(len(every), -1)
        lost = table[0] - table[1:]
        task = lost[:, :items]
        others = lost[:, items:] if self.problem.others else np.zeros_like(task)
        self.observed.append(
            Observed(
                np.repeat(masks, items, axis=0),
                np.concatenate([part.ravel() for part in np.split(lost, len(drawn) // items, 1)]),
                np.concatenate([np.tile(part, len(masks)) for part in drawn.reshape(-1, items)]),
                "confirm",
            )
        )
        return SetDrops(task, others, self.weight, drawn[:items])

    @property
    def knows_confirm(self) -> bool:
        """Whether the intact model was measured on `confirm` items."""
        return "confirmed" in self._pools

    def measure_confirm(self, rows: int) -> PlanGenerator:
        """Measures the intact model on `confirm` items, in the tasks' own metrics."""
        pools = self._pools["confirmed"] = self._drawn("confirm", rows)
        items = np.concatenate(list(pools.values()))
        none = designs.intact(self.problem.components)
        index = np.zeros(len(items), dtype=np.intp)
        responses = yield from self._ask(none, index, items, response="accuracy")
        self._confirm_intact = dict(zip(items.tolist(), responses.tolist(), strict=True))

    def each_on_one(self, masks: Bools, others: int, part: ItemUse) -> PlanGenerator:
        """Measures every mask on an item of the task, and the first masks on one of another task.

        Args:
            masks: The masks, `(masks, components)`.
            others: Number of first masks that are measured on the others, in turn.
            part: `items`, whose rows measure `response`, or `confirm`, whose rows measure the
                tasks' own metrics; the intact model was measured on both.

        Returns:
            Drops `(masks + others,)`, first those of the task.
        """
        names = [""] * len(masks) + [self._next_other() for _ in range(others)]
        index = np.concatenate([np.arange(len(masks)), np.arange(others)])
        if part == "items":
            items = self._next_items(names, "items")
            responses = yield from self._ask(masks, index, items)
            lost = self._lost(names, items, responses)
        else:
            items = self._next_items(names, "confirmed")
            responses = yield from self._ask(masks, index, items, response="accuracy")
            lost = np.array([self._confirm_intact[item] for item in items.tolist()]) - responses
        self.observed.append(Observed(masks, lost, items, part))
        return lost

    def _drawn(self, part: str, rows: int) -> dict[str, NDArray[np.intp]]:
        """Returns items of each task: as many of the task as of all others together.

        The effect of a mask differs between items, so that more rows on the same few items add
        little evidence about the task.
        """
        drawn, pools = {}, self._pools[part]
        for name, items in pools.items():
            shares = max(1, len(pools) - 1) if name else 1
            drawn[name] = self.rng.permutation(items)[: max(4, rows // (2 * shares))]
        return drawn

    def slopes(self, masks: Bools, items: int) -> PlanGenerator:
        """Measures by gradients the loss when each gate closes under every mask, item by item.

        Returns:
            Losses of the task, `(masks, items, components)`, and of the others in turn; the latter
            None without other tasks.
        """
        number = len(masks) * items
        task = yield from self._slopes(masks, [""] * number)
        others = None
        if self.problem.others:
            others = yield from self._slopes(masks, [self._next_other() for _ in range(number)])
        return task, others

    def _slopes(self, masks: Bools, names: list[str]) -> Generator[Plan, Measurement, Floats]:
        items = self._next_items(names, "items")
        index = np.repeat(np.arange(len(masks)), len(names) // len(masks))
        plan = Plan(masks, index, items, gradients=True, response=self.response)
        self.rows += plan.cost
        measurement = yield plan
        slopes: Floats = measurement.slopes().astype(float)
        return slopes.reshape(len(masks), -1, masks.shape[1])

    def _ask(
        self,
        masks: Bools,
        index: NDArray[np.intp],
        items: NDArray[np.intp],
        *,
        response: Response | None = None,
    ) -> Generator[Plan, Measurement, Floats]:
        plan = Plan(masks, index, items, response=response or self.response)
        self.rows += plan.cost
        measurement = yield plan
        return measurement.responses

    def _lost(self, names: list[str], items: NDArray[np.intp], responses: Floats) -> Floats:
        """Returns the losses of rows from the prediction for their items."""
        intact = np.array([self._intact[item] for item in items.tolist()])
        tasks = np.array(names)
        lost = np.empty(len(responses))
        for name in dict.fromkeys(names):
            rows = tasks == name
            predicted = self._levels[name].predict(intact[rows], responses[rows])
            lost[rows] = predicted - responses[rows]
        return lost

    def _next_items(self, names: list[str], pool: str) -> NDArray[np.intp]:
        """Returns the next item of each named task; all items of a task are equally frequent."""
        items = []
        for name in names:
            queue = self._queues.setdefault((name, pool), [])
            if not queue:
                queue += self.rng.permutation(self._pools[pool][name]).tolist()
            items.append(queue.pop())
        return np.array(items, dtype=np.intp)

    def _next_other(self) -> str:
        """Returns the next of the other tasks, in turn."""
        names = [other.name for other in self.problem.others]
        self._turn += 1
        return names[self._turn % len(names)]
