"""Conditional co-ablation: what comes to matter once the leaders are gone, so that backups show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Measurement, Plan
from broca.searches.base import GeneratorSearch, Problem, Ranking, SearchGenerator
from broca.searches.rating import harmful, mean_with_interval


class CoAblation(GeneratorSearch):
    """Every component alone, then every other one beside the leaders, on the same items.

    The leaders are those that surely harm the task alone, `leaders` of them at most. The growth of
    a component is its effect beside the leaders beyond its effect alone: a backup grows, a dead
    head does not. The leaders come first; the places that are left go to those that surely harm
    the task beside the leaders, then to those that do alone. The effect of whoever is selected for
    what it does alone is that, of any other component its effect beside the leaders. Cost: up to
    2 x (components + 1) x items rows.

    Args:
        problem: What to solve.
        leaders: Most leaders; by default half of k, rounded up.

    Source: conditional co-ablation (Gong et al., arXiv 2607.01940). It differs in measuring the
    task's response where the paper measures the distance between output distributions, and in
    finding its leaders itself.
    """

    def __init__(self, problem: Problem, *, leaders: int | None = None) -> None:
        most = (problem.k + 1) // 2 if leaders is None else leaders
        if not 1 <= most <= problem.k:
            raise BadInput(f"co-ablation takes 1 to k ({problem.k}) leaders, not {leaders}")
        self._problem = problem
        self._most = most
        self._items = problem.items_within(2 * (problem.components + 1), method="co-ablation")
        super().__init__(self._generate())

    def _generate(self) -> SearchGenerator:
        problem, items = self._problem, self._items
        singles = designs.singles(problem.components)
        masks = np.vstack([designs.intact(problem.components), singles])
        alone = _changes((yield Plan.crossed(masks, items)), len(items))
        effects, intervals = mean_with_interval(alone)
        order, leaders, reason = harmful(
            effects, intervals, self._most, reason="no component alone surely lowers the score"
        )
        record = {"items": len(items), "leaders": self._most}
        if not leaders:
            return Ranking(effects, order, (), reason, record, intervals=intervals)
        rest = np.array([c for c in order if c not in leaders], dtype=np.intp)
        single, single_intervals = effects.copy(), intervals.copy()
        _, lonely, _ = harmful(single, single_intervals, problem.k, reason="")
        gone = np.zeros((1, problem.components), dtype=bool)
        gone[0, list(leaders)] = True
        beside = _changes(
            (yield Plan.crossed(np.vstack([gone, gone | singles[rest]]), items)), len(items)
        )
        effects[rest], intervals[rest] = mean_with_interval(beside)
        growth, sure = mean_with_interval(beside - alone[:, rest])
        backups = [int(rest[p]) for p in np.argsort(growth, kind="stable") if sure[p, 1] < 0]
        _, places, _ = harmful(effects[rest], intervals[rest], problem.k, reason="")
        # where the leaders leave nothing to lose, what harmed alone is all there is to go by
        together = (*leaders, *(int(rest[place]) for place in places))
        first = tuple(dict.fromkeys((*together, *lonely)))[: problem.k]
        alone_only = [column for column in first if column not in together]
        effects[alone_only] = single[alone_only]
        intervals[alone_only] = single_intervals[alone_only]
        last = sorted(set(rest.tolist()) - set(first), key=lambda column: effects[column])
        return Ranking(
            effects,
            (*first, *last),
            first,
            "",
            record,
            intervals=intervals,
            groups={"leaders": leaders, "backups": tuple(backups)},
        )


def _changes(measurement: Measurement, items: int) -> NDArray[np.float64]:
    """Change of every mask against the plan's first on each item, `(items, masks - 1)`."""
    table = measurement.responses.reshape(-1, items)
    changes: NDArray[np.float64] = (table[1:] - table[0]).T
    return changes
