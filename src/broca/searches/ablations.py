"""Methods that ablate chosen components: one by one, greedily, and together with the leaders."""

from dataclasses import dataclass

import numpy as np

from broca import designs
from broca.errors import BadInput
from broca.measurement import Floats, Ints, Measurement, Plan
from broca.searches.method import Method
from broca.searches.problem import (
    Problem,
    Ranking,
    Search,
    harmful,
    mean_with_interval,
    most_negative,
)

_NO_HARM = "no component alone lowers the score"


class OneShot:
    """Measures every component alone, on the same items as the intact model.

    Cost: (components + 1) x items rows.
    """

    def most_rows(self, problem: Problem) -> int:
        """Returns a row of each item for every component and for the intact model."""
        masks = problem.components + 1
        return masks * len(problem.affordable(masks))

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Ranks by the change from the intact model on the same items."""
        items = problem.affordable(problem.components + 1)
        means = (yield _alone(problem, items)).mask_means()
        effects = means[1:] - means[0]
        selected = most_negative(effects, problem.k)
        return Ranking.of(effects, selected, _NO_HARM, {"items": len(items)})


class Greedy:
    """Ablates the selected set plus each further component in turn; adds the most harmful; k times.

    It stops before k when no further component lowers the score. Cost: up to k x components x items
    rows, and the intact model.

    The effect of a selected component is its change in its round. The others have their change in
    the last round, which orders the ranking below the selection.
    """

    def most_rows(self, problem: Problem) -> int:
        """Returns a row of each item for the masks of k rounds."""
        return _masks_of_rounds(problem) * len(problem.affordable(_masks_of_rounds(problem)))

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Ranks the selected components in their order, then the others by their last round."""
        items = problem.affordable(_masks_of_rounds(problem))
        chosen: list[int] = []
        candidates = np.arange(problem.components)
        alone = (yield _alone(problem, items)).mask_means()
        score, means = alone[0], alone[1:]
        effects = means - score
        while True:
            best = int(np.argmin(means))
            if means[best] >= score:
                break
            chosen.append(int(candidates[best]))
            score = means[best]
            candidates = np.delete(candidates, best)
            if len(chosen) == problem.k or not len(candidates):
                break
            masks = designs.singles(problem.components)[candidates]
            masks[:, chosen] = True
            means = (yield Plan.crossed(masks, items)).mask_means()
            effects[candidates] = means - score
        return Ranking.of(effects, tuple(chosen), _NO_HARM, {"items": len(items)})


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

    def most_rows(self, problem: Problem) -> int:
        """Returns two rows of each item for every component and for the intact model."""
        if self.leaders is not None and not 1 <= self.leaders <= problem.k:
            raise BadInput(f"co-ablation takes 1 to k ({problem.k}) leaders, not {self.leaders}")
        masks = 2 * (problem.components + 1)
        return masks * len(problem.affordable(masks))

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Measures every component alone, then the others together with the leaders."""
        items = problem.affordable(2 * (problem.components + 1))
        most = self.leaders or (problem.k + 1) // 2
        alone = _changes((yield _alone(problem, items)), len(items))
        effects, intervals = mean_with_interval(alone)
        leaders = harmful(effects, intervals, most)
        record = {"items": len(items), "leaders": most}
        if len(leaders) in (0, problem.components):
            reason = "" if leaders else "no component alone significantly lowers the score"
            return Ranking.of(effects, leaders, reason, record, intervals=intervals)
        harmful_alone = harmful(effects, intervals, problem.k)
        by_effect = np.argsort(effects, kind="stable")
        others = by_effect[~np.isin(by_effect, leaders)]
        masks = _alone(problem, items).masks[[0, *(1 + others)]]
        masks[:, list(leaders)] = True
        with_leaders = _changes((yield Plan.crossed(masks, items)), len(items))
        growth, sure = mean_with_interval(with_leaders - alone[:, others])
        backups = others[[p for p in np.argsort(growth, kind="stable") if sure[p, 1] < 0]]
        beside, beside_intervals = mean_with_interval(with_leaders)
        together = (*leaders, *others[list(harmful(beside, beside_intervals, problem.k))].tolist())
        # if the leaders destroy the task, only single ablations give evidence
        selected = tuple(dict.fromkeys((*together, *harmful_alone)))[: problem.k]
        changed = ~np.isin(others, [column for column in selected if column not in together])
        effects[others[changed]] = beside[changed]
        intervals[others[changed]] = beside_intervals[changed]
        groups = {"leaders": leaders, "backups": tuple(backups.tolist())}
        return Ranking.of(effects, selected, "", record, intervals=intervals, groups=groups)


def _masks_of_rounds(problem: Problem) -> int:
    """Returns the number of masks of a greedy search: the intact one, and those of k rounds."""
    rounds = min(problem.k, problem.components)
    return 1 + sum(problem.components - chosen for chosen in range(rounds))


def _alone(problem: Problem, items: Ints) -> Plan:
    """Returns the rows of the intact model, then of every component alone, on the same items."""
    masks = [designs.intact(problem.components), designs.singles(problem.components)]
    return Plan.crossed(np.vstack(masks), items)


def _changes(measurement: Measurement, items: int) -> Floats:
    """Returns the change of every mask from the first mask on each item, `(items, masks - 1)`."""
    table = measurement.responses.reshape(-1, items)
    changes: Floats = (table[1:] - table[0]).T
    return changes


ONE_SHOT = Method(
    name="one-shot", make=OneShot, measures="every head alone",
    answers="which heads matter when ablated alone", rows="(heads + 1) x items",
)  # fmt: skip
GREEDY = Method(
    name="greedy", make=Greedy, measures="every head together with those already selected, k times",
    answers="which head matters most after those selected", rows="about k x heads x items",
)  # fmt: skip
CO_ABLATION = Method(
    name="co-ablation", make=CoAblation,
    measures="every head alone, then together with the leaders, which reveals backups",
    answers="which heads back each other up", rows="2 x heads x items",
    source="conditional co-ablation (Gong et al., arXiv 2607.01940); it differs in measuring the "
    "task's response where the paper measures the distance between output distributions, and in "
    "finding its leaders itself",
)  # fmt: skip
