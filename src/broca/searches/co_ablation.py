"""Conditional co-ablation: which components matter only once the leaders are ablated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca import designs
from broca.errors import BadInput
from broca.measurement import Measurement, Plan
from broca.searches.method import Method
from broca.searches.problem import Problem, Ranking, Search, harmful, mean_with_interval


@dataclass(frozen=True, kw_only=True)
class CoAblation:
    """Ablates every component alone, then every other component together with the leaders.

    The leaders are at most `leaders` components that harm the task significantly when ablated
    alone. The growth of a component is its effect together with the leaders minus its effect alone:
    the effect of a backup grows, the effect of a dead head does not. The leaders are selected
    first, then the components that harm the task significantly together with the leaders, then
    those that do so alone. A component selected by its single ablation keeps that effect; any other
    component has its effect together with the leaders. Cost: up to 2 x (components + 1) x items
    rows.

    Attributes:
        leaders: Maximum number of leaders; by default half of k, rounded up.
    """

    leaders: int | None = None

    def require(self, problem: Problem) -> tuple[NDArray[np.intp], int]:
        """Returns the items that the budget allows, and the maximum number of leaders."""
        most = (problem.k + 1) // 2 if self.leaders is None else self.leaders
        if not 1 <= most <= problem.k:
            raise BadInput(f"co-ablation takes 1 to k ({problem.k}) leaders, not {self.leaders}")
        return problem.affordable(2 * (problem.components + 1), method="co-ablation"), most

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Measures every component alone, then the others together with the leaders."""
        items, most = self.require(problem)
        singles = designs.singles(problem.components)
        masks = np.vstack([designs.intact(problem.components), singles])
        alone = _changes((yield Plan.crossed(masks, items)), len(items))
        effects, intervals = mean_with_interval(alone)
        leaders = harmful(effects, intervals, most)
        record = {"items": len(items), "leaders": most}
        if not leaders:
            reason = "no component alone significantly lowers the score"
            return Ranking.of(effects, (), reason, record, intervals=intervals)
        by_effect = np.argsort(effects, kind="stable")
        others = by_effect[~np.isin(by_effect, leaders)]
        single, single_intervals = effects.copy(), intervals.copy()
        gone = np.zeros((1, problem.components), dtype=bool)
        gone[0, list(leaders)] = True
        with_leaders = _changes(
            (yield Plan.crossed(np.vstack([gone, gone | singles[others]]), items)), len(items)
        )
        effects[others], intervals[others] = mean_with_interval(with_leaders)
        growth, sure = mean_with_interval(with_leaders - alone[:, others])
        backups = [int(others[p]) for p in np.argsort(growth, kind="stable") if sure[p, 1] < 0]
        places = harmful(effects[others], intervals[others], problem.k)
        # if the leaders destroy the task, only single ablations give evidence
        together = (*leaders, *others[list(places)].tolist())
        harmful_alone = harmful(single, single_intervals, problem.k)
        selected = tuple(dict.fromkeys((*together, *harmful_alone)))[: problem.k]
        alone_only = [column for column in selected if column not in together]
        effects[alone_only] = single[alone_only]
        intervals[alone_only] = single_intervals[alone_only]
        groups = {"leaders": leaders, "backups": tuple(backups)}
        return Ranking.of(effects, selected, "", record, intervals=intervals, groups=groups)


def _changes(measurement: Measurement, items: int) -> NDArray[np.float64]:
    """Returns the change of every mask from the first mask on each item, `(items, masks - 1)`."""
    table = measurement.responses.reshape(-1, items)
    changes: NDArray[np.float64] = (table[1:] - table[0]).T
    return changes


METHOD = Method(
    name="co-ablation", make=CoAblation,
    measures="every head alone, then together with the leaders, which reveals backups",
    answers="which heads back each other up",
    rows="2 x heads x items",
    usual_rows=lambda p: 2 * p.components * len(p.items),
    source="conditional co-ablation (Gong et al., arXiv 2607.01940); it differs in measuring the "
    "task's response where the paper measures the distance between output distributions, and in "
    "finding its leaders itself",
)  # fmt: skip
