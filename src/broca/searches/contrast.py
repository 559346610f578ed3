"""Adds a contrast with the other tasks to a method that measures only one task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from broca import designs
from broca.errors import BadInput
from broca.measurement import Measurement, Plan, Response
from broca.searches.problem import Problem, Ranking, Search, Strategy


@dataclass(frozen=True)
class Contrasted:
    """Estimates effects on the difference between the task's loss and the other tasks' losses.

    Every item of the task has a partner, an item of one of the other tasks in turn. If the method
    requests an item under a mask, the partner is measured under the same mask, and the method
    receives the item's response plus `weight` times the partner's loss; likewise for gradients.
    Pairs are the same under all masks, so that differences between items cancel as without a
    contrast.

    The budget covers both: the method has half of the rows that remain after the partners' intact
    responses.

    Attributes:
        strategy: The method with its options.
        weight: Weight of a loss of the others.
    """

    strategy: Strategy
    weight: float

    def __post_init__(self) -> None:
        if not isinstance(self.weight, (int, float)) or not 0 <= self.weight < float("inf"):
            raise BadInput(f"contrast must be 0 or more, not {self.weight!r}")

    def require(self, problem: Problem) -> object:
        """Refuses a problem that the method refuses with the remaining rows."""
        if not problem.others:
            raise BadInput(
                "`contrast` weighs the losses of other tasks, and there are none: name some in "
                "`others`, or leave `contrast` out"
            )
        return self.strategy.require(self._alone(problem))

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Runs the method on responses from which the partners' losses are subtracted."""
        partners = _partners(problem)
        intact: dict[tuple[Response | None, int], float] = {}
        search = self.strategy.generate(self._alone(problem))
        measurement: Any = None
        rows = 0
        while True:
            try:
                plan = search.send(measurement)
            except StopIteration as end:
                ranking: Ranking = end.value
                break
            paired = np.array([partners[item] for item in plan.item_index.tolist()], dtype=np.intp)
            unknown = sorted(
                item for item in set(paired.tolist()) if (plan.response, item) not in intact
            )
            if unknown:
                none = designs.intact(problem.components)
                alone = yield Plan.crossed(none, np.array(unknown), response=plan.response)
                for item, value in zip(unknown, alone.responses.tolist(), strict=True):
                    intact[plan.response, item] = value
            joint = replace(
                plan,
                mask_index=np.concatenate([plan.mask_index, plan.mask_index]),
                item_index=np.concatenate([plan.item_index, paired]),
            )
            measured = yield joint
            rows += len(unknown) + joint.cost
            level = np.array([intact[plan.response, item] for item in paired.tolist()])
            responses, of_partners = np.split(measured.responses, 2)
            gradients = None
            if measured.gradients is not None:
                first, second = np.split(measured.gradients, 2)
                gradients = first - np.float32(self.weight) * second
            beyond = responses + self.weight * (level - of_partners)
            measurement = Measurement(plan, beyond, gradients)
        options = {**ranking.options, "contrast": float(self.weight)}
        if "rows" in options:
            options["rows"] = rows
        return replace(ranking, options=options)

    def _alone(self, problem: Problem) -> Problem:
        """Returns the problem of the method: only the task, and its share of the rows."""
        rows = problem.rows
        if rows is not None:
            rows = max(0, rows - len(problem.items) - len(problem.confirm)) // 2
        return replace(problem, others=(), rows=rows)


def _partners(problem: Problem) -> dict[int, int]:
    """Returns each item's partner, an item of one of the other tasks in turn."""
    partners = {}
    for part in ("items", "confirm"):
        for place, item in enumerate(getattr(problem, part).tolist()):
            other = problem.others[place % len(problem.others)]
            pool = getattr(other, part)
            pool = pool if len(pool) else other.items
            partners[item] = int(pool[place // len(problem.others) % len(pool)])
    return partners
