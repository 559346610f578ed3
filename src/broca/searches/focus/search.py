"""Focus: screen groups cheaply, then settle by joint sets what screening cannot see.

Three facts decide its form. A row may have its own mask, so that rows and not masks are what
costs. Effects add up well enough to find who matters, and badly enough that the best set is not the
set of the best. And what every task needs wins any search that looks at one task alone. So:

1. a pilot finds the share of components whose loss the task partly survives;
2. screening narrows them down to a short list: fresh random masks over those that are left, on the
   task and on the others, rated by what the task loses beyond what the others lose, and by how far
   its answers move either way;
3. joint rounds measure small sets from the short list and learn what sets are worth, pairs
   included; the next sets are those that may be the best; between rounds, gradients where such sets
   are ablated show what matters only beside them, and it joins the short list;
4. the best meet on fresh items under the task's own metric, in a knock-out;
5. every member of the winner has to show what it adds, or what it does alone; else it goes, and
   of the sets that remain the simplest that does harm is the answer.

The answer has at most k members, and none where no set does specific harm. It stops before the
budget is spent once the answer is stable: when the sets that may be the best all cost the task
nearly what it has, when no item tells those of the knock-out apart, or when even the winner
certainly does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from broca.errors import BadInput
from broca.searches.base import Problem, Ranking, SearchGenerator
from broca.searches.focus.joint import joint_rounds
from broca.searches.focus.screening import SHORT, Screened, rows_per_mask, screen
from broca.searches.focus.settling import Settled, knock_out, settle
from broca.searches.measuring import ROWS_PER_TASK, Measuring, budget_of
from broca.searches.pilot import MOST_MASKS, SHARES, pilot
from broca.searches.records import Method

_ROWS_PER_HALVING = 200
"""Rows of the task in screening for each halving on the way to the short list."""
_SCREEN = (0.4, 0.7)
"""Least and most part of the budget for screening."""
_WIDENING = 0.35
"""Part of what screening leaves for gradients beside promising sets."""
_LATER = (0.3, 0.25, 0.25)
"""Parts of what is left then: joint rounds, knock-out, members."""
_OFTEN = 0.9
"""Share of resamples in which the others need a component that is called universal."""


@dataclass(frozen=True)
class StageRows:
    """Rows of each stage; the last proof has what is left.

    Attributes:
        intact: The intact model, for the items' fixed effects.
        pilot: Masks of each size in the pilot.
        screen: Screening.
        widening: Gradients beside promising sets; none where rows return no gradients.
        joint: Joint rounds.
        knock_out: The knock-out on fresh items.
        members: What members add, and do alone.
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
        """Shares a budget out.

        The rows that find a few among many grow with the logarithm of how many there are; what
        settles a short list does not.

        Args:
            budget: Rows in all.
            components: Number of components.
            per_mask: Rows that a screening mask takes on average.
            gradients: Whether rows return gradients.
        """
        intact = budget // 20
        halvings = float(np.log2(max(2.0, components / SHORT)))
        wanted = _ROWS_PER_HALVING * halvings * per_mask
        screen = int(np.clip(wanted, _SCREEN[0] * budget, _SCREEN[1] * budget))
        masks = min(MOST_MASKS, max(1, budget // 100))
        left = budget - intact - screen - masks * len(SHARES)
        widening = int(_WIDENING * left) if gradients else 0
        left -= widening
        return cls(intact, masks, screen, widening, *(int(part * left) for part in _LATER))


@dataclass(frozen=True, kw_only=True)
class Focus:
    """Finds the small set whose loss harms the task most beyond what it does to the others.

    Without a budget it spends 800 rows for each measured task.

    Attributes:
        cost: Specific drop that each further member of a set must add.
        least: Least drop of the task beyond the others that is a finding.
        gradients: Whether to ask for gradients where rows return them; each counts as three rows.
        contrast: What a drop of the others counts for. 1 looks for the largest specific drop, the
            task's less the others' mean; 0 for the largest drop of the task, whoever else suffers.
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
        """The budget in rows."""
        return budget_of(problem, "focus")

    def generate(self, problem: Problem) -> SearchGenerator:
        """Screens, settles the set, and ranks."""
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
        contrast = effects - screened.weight * screened.others
        members = screened.short[settled.members]
        first = members[np.argsort(contrast[members], kind="stable")]
        later = [c for c in np.argsort(contrast, kind="stable") if c not in set(first.tolist())]
        order = tuple(int(column) for column in (*first, *later))
        universal = tuple(
            int(column)
            for column in np.argsort(screened.others, kind="stable")
            if screened.others[column] <= -self.least / 2
            and screened.universal[column] >= _OFTEN
            and column not in set(first.tolist())
        )
        return Ranking(
            effects,
            order,
            () if settled.reason else tuple(int(column) for column in first),
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
    """Whether fewer rows than the budget were enough, and why."""
    if not measuring.enough:
        return ()
    reasons = "; ".join(measuring.enough)
    return (f"{measuring.rows:,} of {budget:,} rows were enough: {reasons}",)


METHOD = Method(
    name="focus", order=1, make=Focus, response="probability", measures_others=True,
    measures="random groups on the task and the others, then small sets together",
    answers="which set this task needs and the others do not",
    rows="at most 800 for each task measured",
    most=lambda problem: ROWS_PER_TASK * (1 + len(problem.others)),
    counting={"stop": False},
)  # fmt: skip
