"""Adds a contrast with the other tasks to a method that measures only one task."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Measurement, Plan, Response
from broca.searches.base import GeneratorSearch, Problem, SearchGenerator, Strategy


@dataclass(frozen=True, kw_only=True)
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

    def require(self, problem: Problem) -> object:
        """Refuses a problem that the method refuses with the remaining rows."""
        if not problem.others:
            raise BadInput(
                "`contrast` weighs the losses of other tasks, and there are none: name some in "
                "`others`, or leave `contrast` out"
            )
        return self.strategy.require(self._alone(problem))

    def generate(self, problem: Problem) -> SearchGenerator:
        """Runs the method on responses from which the partners' losses are subtracted."""
        partners = _partners(problem)
        intact: dict[tuple[Response | None, int], float] = {}
        search = GeneratorSearch(self.strategy.generate(self._alone(problem)))
        rows = 0
        while (plan := search.ask()) is not None:
            paired = np.array([partners[item] for item in plan.item_index.tolist()], dtype=np.intp)
            unknown = {
                partner for partner in paired.tolist() if (plan.response, partner) not in intact
            }
            measured = yield from _on_intact(plan, sorted(unknown))
            intact.update(((plan.response, partner), value) for partner, value in measured.items())
            joint = replace(
                plan,
                mask_index=np.concatenate([plan.mask_index, plan.mask_index]),
                item_index=np.concatenate([plan.item_index, paired]),
            )
            measurement = yield joint
            rows += len(unknown) + joint.cost
            level = np.array([intact[plan.response, partner] for partner in paired.tolist()])
            search.tell(self._beyond(plan, measurement, level))
        ranking = search.result()
        options = {**ranking.options, "contrast": self.weight}
        if "rows" in options:
            options["rows"] = rows
        return replace(ranking, options=options)

    def _alone(self, problem: Problem) -> Problem:
        """Returns the problem of the method: only the task, and its share of the rows."""
        rows = problem.rows
        if rows is not None:
            rows = max(0, rows - len(problem.items) - len(problem.confirm)) // 2
        return replace(problem, others=(), rows=rows)

    def _beyond(
        self, plan: Plan, measurement: Measurement, level: NDArray[np.float64]
    ) -> Measurement:
        """Returns the measurement for the method, in which a loss of both partners cancels."""
        count = len(plan)
        lost = level - measurement.responses[count:]
        gradients = None
        if measurement.gradients is not None:
            of_partners = measurement.gradients[count:]
            gradients = measurement.gradients[:count] - np.float32(self.weight) * of_partners
        return Measurement(plan, measurement.responses[:count] + self.weight * lost, gradients)


def _on_intact(plan: Plan, items: list[int]) -> Generator[Plan, Measurement, dict[int, float]]:
    """Measures the intact responses of items in the response of a plan, by item."""
    if not items:
        return {}
    none = designs.intact(plan.masks.shape[1])
    measurement = yield Plan.crossed(none, np.array(items), response=plan.response)
    return dict(zip(items, measurement.responses.tolist(), strict=True))


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
