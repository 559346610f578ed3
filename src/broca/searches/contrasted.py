"""Makes a method that measures one task alone weigh what the other tasks lose."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.measurement import Measurement, Plan, Response
from broca.searches.base import Problem, Ranking, SearchGenerator, Strategy


@dataclass(frozen=True, kw_only=True)
class Contrasted:
    """Solves for what a task loses beyond what the other tasks lose.

    Every item of the task has a partner, an item of another task in turn. Where the method asks for
    an item under a mask, the partner is asked under the same mask, and the method is told what the
    item responds plus `weight` times what the partner lost; likewise for gradients. Pairs are the
    same under all masks, so that what differs between items cancels as it does without a contrast.

    A budget pays for both: the method has half of what the partners' intact responses leave.

    Attributes:
        strategy: The method, with its options set.
        weight: What a loss of the others counts for.
    """

    strategy: Strategy
    weight: float

    def require(self, problem: Problem) -> object:
        """Refuses what the method refuses of the rows that are left for it."""
        if not problem.others:
            raise BadInput(
                "`contrast` weighs what other tasks lose, and there are none: name some in "
                "`others`, or leave `contrast` out"
            )
        return self.strategy.require(self._alone(problem))

    def generate(self, problem: Problem) -> SearchGenerator:
        """Runs the method on responses from which what partners share is taken off."""
        partners = _partners(problem)
        intact: dict[tuple[Response | None, int], float] = {}
        search = self.strategy.generate(self._alone(problem))
        rows, plan = 0, next(search)
        while True:
            paired = np.array([partners[item] for item in plan.item_index.tolist()], dtype=np.intp)
            unknown = {
                partner for partner in paired.tolist() if (plan.response, partner) not in intact
            }
            measured = yield from _on_intact(plan, sorted(unknown))
            intact.update(((plan.response, partner), value) for partner, value in measured.items())
            both = replace(
                plan,
                mask_index=np.concatenate([plan.mask_index, plan.mask_index]),
                item_index=np.concatenate([plan.item_index, paired]),
            )
            measurement = yield both
            rows += len(unknown) + both.cost
            level = np.array([intact[plan.response, partner] for partner in paired.tolist()])
            try:
                plan = search.send(self._beyond(plan, measurement, level))
            except StopIteration as end:
                ranking: Ranking = end.value
                options = {**ranking.options, "contrast": self.weight}
                if "rows" in options:
                    options["rows"] = rows
                return replace(ranking, options=options)

    def _alone(self, problem: Problem) -> Problem:
        """The problem of the method: the task alone, and its share of the rows."""
        rows = problem.rows
        if rows is not None:
            rows = max(0, rows - len(problem.items) - len(problem.confirm)) // 2
        return replace(problem, others=(), rows=rows)

    def _beyond(
        self, plan: Plan, measurement: Measurement, level: NDArray[np.float64]
    ) -> Measurement:
        """What the method is told: a loss that partners share counts as none."""
        count = len(plan)
        lost = level - measurement.responses[count:]
        gradients = None
        if measurement.gradients is not None:
            of_partners = measurement.gradients[count:]
            gradients = measurement.gradients[:count] - np.float32(self.weight) * of_partners
        return Measurement(plan, measurement.responses[:count] + self.weight * lost, gradients)


def _on_intact(plan: Plan, items: list[int]) -> Generator[Plan, Measurement, dict[int, float]]:
    """Responses of items of the intact model, by item, in what a plan measures."""
    if not items:
        return {}
    none = np.zeros((1, plan.masks.shape[1]), dtype=bool)
    measurement = yield Plan.crossed(none, np.array(items), response=plan.response)
    return dict(zip(items, measurement.responses.tolist(), strict=True))


def _partners(problem: Problem) -> dict[int, int]:
    """The item of another task that goes with each item, tasks in turn."""
    partners = {}
    for part in ("items", "confirm"):
        mine = getattr(problem, part)
        for place, item in enumerate(mine.tolist()):
            other = problem.others[place % len(problem.others)]
            theirs = getattr(other, part)
            theirs = theirs if len(theirs) else other.items
            partners[item] = int(theirs[place // len(problem.others) % len(theirs)])
    return partners
