"""Conditional co-ablation: which components matter only once the leaders are ablated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Measurement, Plan
from broca.searches.base import Problem, Ranking, SearchGenerator
from broca.searches.rating import harmful, mean_with_interval
from broca.searches.records import Method


@dataclass(frozen=True, kw_only=True)
class CoAblation:
    """Every component alone, then every other one beside the leaders, on the same items.

    The leaders are the components that harm the task significantly when ablated alone, `leaders`
    of them at most. The growth of a component is its effect beside the leaders less its effect
    alone: a backup grows, a dead head does not. The leaders are selected first, then the components
    that harm the task significantly beside the leaders, then those that do so alone. A component
    selected by its single ablation keeps that effect; any other component has its effect beside the
    leaders. Cost: up to 2 x (components + 1) x items rows.

    Attributes:
        leaders: Maximum number of leaders; by default half of k, rounded up.
    """

    leaders: int | None = None

    def require(self, problem: Problem) -> tuple[NDArray[np.intp], int]:
        """The items that the budget pays for, and the most leaders."""
        most = (problem.k + 1) // 2 if self.leaders is None else self.leaders
        if not 1 <= most <= problem.k:
            raise BadInput(f"co-ablation takes 1 to k ({problem.k}) leaders, not {self.leaders}")
        return problem.items_within(2 * (problem.components + 1), method="co-ablation"), most

    def generate(self, problem: Problem) -> SearchGenerator:
        """Measures every component alone, then the others beside the leaders."""
        items, most = self.require(problem)
        singles = designs.singles(problem.components)
        masks = np.vstack([designs.intact(problem.components), singles])
        alone = _changes((yield Plan.crossed(masks, items)), len(items))
        effects, intervals = mean_with_interval(alone)
        order, leaders, reason = harmful(
            effects, intervals, most, reason="no component alone significantly lowers the score"
        )
        record = {"items": len(items), "leaders": most}
        if not leaders:
            return Ranking(effects, order, (), reason, record, intervals=intervals)
        others = np.array([c for c in order if c not in leaders], dtype=np.intp)
        single, single_intervals = effects.copy(), intervals.copy()
        _, harmful_alone, _ = harmful(single, single_intervals, problem.k, reason="")
        gone = np.zeros((1, problem.components), dtype=bool)
        gone[0, list(leaders)] = True
        with_leaders = _changes(
            (yield Plan.crossed(np.vstack([gone, gone | singles[others]]), items)), len(items)
        )
        effects[others], intervals[others] = mean_with_interval(with_leaders)
        growth, sure = mean_with_interval(with_leaders - alone[:, others])
        backups = [int(others[p]) for p in np.argsort(growth, kind="stable") if sure[p, 1] < 0]
        _, places, _ = harmful(effects[others], intervals[others], problem.k, reason="")
        # where the leaders leave nothing to lose, what harmed alone is all there is to go by
        together = (*leaders, *(int(others[place]) for place in places))
        first = tuple(dict.fromkeys((*together, *harmful_alone)))[: problem.k]
        alone_only = [column for column in first if column not in together]
        effects[alone_only] = single[alone_only]
        intervals[alone_only] = single_intervals[alone_only]
        last = sorted(set(others.tolist()) - set(first), key=lambda column: effects[column])
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


METHOD = Method(
    name="co-ablation", order=8, make=CoAblation,
    measures="every head alone, then beside the leaders, which reveals backups",
    answers="which heads stand in for each other",
    rows="2 x heads x items",
    source="conditional co-ablation (Gong et al., arXiv 2607.01940); it differs in measuring the "
    "task's response where the paper measures the distance between output distributions, and in "
    "finding its leaders itself",
    counted_losses="additive",
)  # fmt: skip
