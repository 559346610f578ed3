"""Focus: screens random groups, then tests joint sets for effects that screening misses.

Its form follows from three facts. A row may have its own mask, so that rows determine the cost, not
masks. Effects add up well enough to find the components that matter, but the best set need not
consist of the best components. A search that measures only one task selects the components that
every task needs. The stages are:

1. a pilot finds the share of components whose ablation destroys the task only partly;
2. screening narrows the components down to a short list. It measures fresh random masks on the task
   and on the others, and rates a component by the task's loss beyond the others' loss, and by the
   change of the task's responses in either direction;
3. joint rounds measure small sets from the short list and learn the worth of sets, with the
   interactions of pairs; the next sets are those that may be the best. Between rounds, gradients
   with such sets ablated find components that matter only together with them, and these components
   join the short list;
4. a knock-out compares the best sets on fresh items in the task's own metric;
5. members of the winner that neither add to it nor do harm alone are removed, and the simplest of
   the remaining sets that does harm is the answer.

The answer has at most k members, and none if no set does specific harm. The search stops before the
budget is spent once the answer is stable: when all sets that may be the best cost the task nearly
its whole response, when the sets of the knock-out are equal on every item, or when the winner
significantly does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from broca.errors import BadInput
from broca.searches.base import Problem, Ranking, SearchGenerator, members_first
from broca.searches.focus.joint import joint_rounds
from broca.searches.focus.screening import SHORT, Screened, rows_per_mask, screen
from broca.searches.focus.settling import Settled, knock_out, settle
from broca.searches.measuring import ROWS_PER_TASK, Measuring, budget_of
from broca.searches.pilot import MOST_MASKS, SHARES, pilot
from broca.searches.records import Method

_ROWS_PER_HALVING = 200
"""Number of rows of the task in screening for each halving of the candidates."""
_SCREEN = (0.4, 0.7)
"""Minimum and maximum share of the budget for screening."""
_WIDENING = 0.35
"""Share of the rows after screening for gradients with promising sets ablated."""
_LATER = (0.3, 0.25, 0.25)
"""Shares of the remaining rows: joint rounds, knock-out, members."""
_OFTEN = 0.9
"""Minimum share of resamples in which the others need a universal component."""


@dataclass(frozen=True)
class StageRows:
    """Number of rows of each stage; the last comparison has the remaining rows.

    Attributes:
        intact: The intact model, for the items' fixed effects.
        pilot: Masks of each size in the pilot.
        screen: Screening.
        widening: Gradients with promising sets ablated; 0 if rows return no gradients.
        joint: Joint rounds.
        knock_out: The knock-out on fresh items.
        members: Tests of the members.
    """

    intact: int
    pilot: int
    screen: int
    widening: int
    joint: int
    knock_out: int
    members: int

    @classmethod
    def of(cls, budget: int, *, components: int, per_mask: float, gradients: bool) -> StageRows:
        """Divides a budget among the stages.

        The rows of screening grow with the logarithm of the number of components; the rows of later
        stages do not.

        Args:
            budget: Total number of rows.
            components: Number of components.
            per_mask: Mean number of rows of a screening mask.
            gradients: Whether rows return gradients.
        """
        intact = budget // 20
        halvings = float(np.log2(max(2.0, components / SHORT)))
        halving_rows = _ROWS_PER_HALVING * halvings * per_mask
        screen = int(np.clip(halving_rows, _SCREEN[0] * budget, _SCREEN[1] * budget))
        masks = min(MOST_MASKS, max(1, budget // 100))
        later = budget - intact - screen - masks * len(SHARES)
        widening = int(_WIDENING * later) if gradients else 0
        later -= widening
        return cls(intact, masks, screen, widening, *(int(part * later) for part in _LATER))


@dataclass(frozen=True, kw_only=True)
class Focus:
    """Finds the small set whose ablation has the largest specific drop.

    Without a budget it spends 800 rows for each measured task.

    Attributes:
        cost: Specific drop that each further member of a set must add.
        least: Minimum specific drop of a finding.
        gradients: Whether to use gradients if rows return them; each counts as three rows.
        contrast: Weight of the others' mean drop. 1 looks for the largest specific drop, 0 for the
            largest drop of the task.
        stop: Whether to stop before the budget is spent once the answer is stable.
    """

    cost: float = 0.02
    least: float = 0.05
    contrast: float = 1.0
    gradients: bool = True
    stop: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.cost < 1 or not 0 <= self.least < 1:
            raise BadInput(
                f"focus's cost and least are drops from 0 to 1, not {self.cost} and {self.least}"
            )
        if self.contrast < 0:
            raise BadInput(f"focus's contrast must be 0 or more, not {self.contrast}")
        for name, value in (("gradients", self.gradients), ("stop", self.stop)):
            if not isinstance(value, bool):
                raise BadInput(f"focus's {name} must be true or false, not {value}")

    def require(self, problem: Problem) -> int:
        """Returns the budget in rows."""
        return budget_of(problem, "focus")

    def generate(self, problem: Problem) -> SearchGenerator:
        """Screens, decides on the set, and ranks."""
        budget = self.require(problem)
        gradients = self.gradients and problem.differentiable
        stages = StageRows.of(
            budget,
            components=problem.components,
            per_mask=rows_per_mask(others=bool(problem.others)),
            gradients=gradients,
        )
        measuring = Measuring(problem, budget, self.contrast, self.stop)
        yield from measuring.measure_intact(stages.intact)
        size, _ = yield from pilot(
            measuring.drops,
            problem.components,
            masks=stages.pilot,
            rng=measuring.rng,
            intact=measuring.intact_level,
        )
        share = size / problem.components
        screened = yield from screen(measuring, share, stages.screen)
        promising = yield from joint_rounds(
            measuring, screened, rows=stages.joint, widening=stages.widening, cost=self.cost
        )
        winner = yield from knock_out(measuring, promising, stages.knock_out, least=self.least)
        settled = yield from settle(
            measuring, promising, winner, rows=stages.members, cost=self.cost, least=self.least
        )
        record = {
            "rows": measuring.rows,
            "budget": budget,
            "cost": self.cost,
            "least": self.least,
            "contrast": self.contrast,
            "gradients": gradients,
            "stop": self.stop,
            "share": share,
            "response": measuring.response,
        }
        return self._ranked(promising.screened, settled, record, _notes(measuring, budget))

    def _ranked(
        self,
        screened: Screened,
        settled: Settled,
        record: dict[str, Any],
        notes: tuple[str, ...],
    ) -> Ranking:
        effects = screened.target.copy()
        intervals = screened.estimates.intervals.copy()
        for place, (low, effect, high) in settled.harms.items():
            effects[screened.short[place]] = effect
            intervals[screened.short[place]] = low, high
        order, members, universal = members_first(
            screened.short[settled.members],
            effects - screened.weight * screened.others,
            screened.others,
            (screened.others <= -self.least / 2) & (screened.universal >= _OFTEN),
        )
        return Ranking(
            effects,
            order,
            () if settled.reason else members,
            settled.reason,
            record,
            intervals=intervals,
            frequency=screened.frequency,
            p_values=screened.estimates.p_values,
            q_values=screened.estimates.q_values,
            others=screened.others,
            universal=universal,
            notes=notes,
            additivity=screened.additivity,
        )


def _notes(measuring: Measuring, budget: int) -> tuple[str, ...]:
    """Returns a note if fewer rows than the budget were enough."""
    if not measuring.enough:
        return ()
    reasons = "; ".join(measuring.enough)
    return (f"{measuring.rows:,} of {budget:,} rows were enough: {reasons}",)


METHOD = Method(
    name="focus", order=1, make=Focus, response="probability", measures_others=True,
    measures="random groups on the task and the others, then small sets together",
    answers="which set this task needs and the others do not",
    rows="at most 800 for each task measured",
    usual_rows=lambda problem: ROWS_PER_TASK * (1 + len(problem.others)),
)  # fmt: skip
