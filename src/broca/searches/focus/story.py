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

The answer has at most k members, and none where no set does specific harm.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from broca.errors import BadInput
from broca.plan import Measurement, Plan
from broca.recovery import PairwiseModel
from broca.searches.base import Problem, Ranking, Story, Told
from broca.searches.focus.bench import Bench, Bools, Floats, Table
from broca.searches.focus.joint import Promising, joint_rounds
from broca.searches.focus.screening import SHORT, Screened, rows_per_mask, screen
from broca.searches.pilot import MOST_MASKS, SHARES, pilot

ROWS_PER_TASK = 800
"""Rows for each measured task, the task itself and each other one, where no budget is given."""

_FEWEST_ROWS = 300
"""Without other tasks; twice as many with them."""
_ROWS_PER_HALVING = 200
"""Rows of the task in screening for each halving on the way to the short list."""
_SCREEN = (0.1, 0.7)
"""Least and most part of the budget for screening."""
_WIDENING = 0.35
"""Part of what screening leaves for gradients beside promising sets."""
_REST = (0.3, 0.25, 0.25)
"""Parts of what is left then: joint rounds, knock-out, members."""
_FEWEST_ITEMS = 4
"""Items on which members are asked; where they cannot be paid for, fewer are asked alone."""
_ENTERING = 8
"""Items on which sets meet first in the knock-out; where they cannot be paid for, fewer enter."""
_OFTEN = 0.9
"""Share of resamples in which the others need a component that is called universal."""
_MISFIT = 0.1
"""Standard error of forecasts beside the statistical one: pairs are not all there is,
and the response is not the metric."""
_IMAGINED = 0.5
"""What the item that is imagined beside those measured differs by."""
_SURELY = 2.0
"""Standard errors by which a member has to add more than its cost to stay without more ado."""
_CLOSE = 1.0
"""Standard errors by which a set may stay behind the best and still be preferred as the simpler."""


@dataclass(frozen=True)
class Parts:
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
    def of(cls, budget: int, *, components: int, per_mask: float, gradients: bool) -> Parts:
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
        rest = budget - intact - screen - masks * len(SHARES)
        widening = int(_WIDENING * rest) if gradients else 0
        rest -= widening
        return cls(intact, masks, screen, widening, *(int(part * rest) for part in _REST))


class Focus(Told):
    """Finds the small set whose loss harms the task most beyond what it does to the others.

    Args:
        problem: What to solve. Without `rows` it spends 800 for each measured task.
        cost: Specific drop that each further member of a set must add.
        least: Least drop of the task, and of the task beyond the others, that is a finding.
        gradients: Whether to ask for gradients where rows return them; each counts as three rows.
        contrast: What a drop of the others counts for. 1 looks for the largest specific drop, the
            task's less the others' mean; 0 for the largest drop of the task, whoever else suffers.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        cost: float = 0.02,
        least: float = 0.1,
        contrast: float = 1.0,
        gradients: bool = True,
    ) -> None:
        tasks = 1 + len(problem.others)
        budget = problem.rows if problem.rows is not None else ROWS_PER_TASK * tasks
        fewest = _FEWEST_ROWS * (2 if problem.others else 1)
        if budget < fewest:
            raise BadInput(
                f"--rows {budget} is too few for focus: it needs {fewest} at least; use more rows "
                "or another method"
            )
        if not 0 <= cost < 1 or not 0 <= least < 1:
            raise BadInput(f"focus's cost and least are drops from 0 to 1, not {cost} and {least}")
        if contrast < 0:
            raise BadInput(f"focus's contrast must be 0 or more, not {contrast}")
        if not isinstance(gradients, bool):
            raise BadInput(f"focus's gradients must be true or false, not {gradients}")
        self._problem = problem
        self._contrast = contrast
        self._gradients = gradients and problem.differentiable
        self._budget = budget
        self._cost = cost
        self._least = least
        self._parts = Parts.of(
            budget,
            components=problem.components,
            per_mask=rows_per_mask(others=bool(problem.others)),
            gradients=self._gradients,
        )
        super().__init__(self._tell_story())

    def _tell_story(self) -> Story:
        problem = self._problem
        bench = Bench(problem, self._budget, self._contrast)
        parts = self._parts
        yield from bench.measure_intact(parts.intact)
        size, _ = yield from pilot(
            bench.drops,
            problem.components,
            masks=parts.pilot,
            rng=bench.rng,
            intact=bench.intact_level,
        )
        share = size / problem.components
        screened = yield from screen(bench, share, parts.screen)
        promising = yield from joint_rounds(
            bench, screened, rows=parts.joint, widening=parts.widening, cost=self._cost
        )
        winner = yield from _knock_out(bench, promising, parts.knock_out)
        return (yield from self._prove(bench, promising, winner, share))

    def _prove(
        self,
        bench: Bench,
        promising: Promising,
        winner: Bools,
        share: float,
    ) -> Generator[Plan, Measurement, Ranking]:
        """Asks of each member what it adds and what it does alone; settles the set and its size."""
        problem, screened, model = self._problem, promising.screened, promising.model
        inside = np.flatnonzero(winner)
        rated = [int(place) for place in np.argsort(screened.target[screened.short])]
        worth_asking = screened.target[screened.short] <= -self._least / 4
        alone = [*inside, *(p for p in rated if not winner[p] and worth_asking[p])][: 2 * problem.k]
        trials = [winner]
        for place in inside:
            trials.append(winner.copy())
            trials[-1][place] = False
        for place in alone:
            trials.append(np.zeros_like(winner))
            trials[-1][place] = True
        rows = bench.bundle_rows(1)
        trials = trials[: max(2 + len(inside), self._parts.members // rows // _FEWEST_ITEMS)]
        alone = alone[: max(0, len(trials) - 1 - len(inside))]
        items = max(1, self._parts.members // rows // (len(trials) + 1))
        table = yield from bench.crossed(screened.masks(np.stack(trials)), items)
        without = table.slice(1, 1 + len(inside))
        single = table.slice(1 + len(inside), len(trials))
        smaller_sets = np.stack(trials[1 : 1 + len(inside)])
        adds, errors = _blended(
            table.specific(0)[None] - without.specifics(),
            model.values(winner[None]) - model.values(smaller_sets),
            model.errors(smaller_sets, beside=winner),
        )
        harms = {place: single.interval(row) for row, place in enumerate(alone)}
        lasting = {
            place
            for row, (place, (_, effect, high)) in enumerate(harms.items())
            if effect <= -self._least / 2
            and high < 0
            and single.specific(row).mean() > 0
            and screened.contrast[place] <= -self._least / 2
        }
        more = [place for place in rated if place in lasting]
        # members go one by one, those first that add least, but for those that surely add; what
        # harms alone stays to the end
        worth = {int(place): adds[row] for row, place in enumerate(inside)}
        sure = {int(place) for place in inside[adds - _SURELY * errors > self._cost]}
        leaving = sorted(set(worth) - sure, key=lambda place: (place in lasting, worth[place]))
        gone = [leaving[:number] for number in range(len(leaving) + bool(sure))]
        if len(leaving) > 1:  # which of two adds least is often a matter of luck
            gone.append(leaving[1:2])
        answers = []
        for places in gone:
            smaller = winner.copy()
            smaller[places] = False
            answers.append(_with(smaller, more, problem.k))
        answers = list(np.unique(np.stack([*answers, winner]), axis=0))
        answers.sort(key=lambda one: (-one[more].sum(), one.sum()))
        items = max(1, bench.left // bench.bundle_rows(len(answers) + 1))
        last = yield from bench.crossed(screened.masks(np.stack(answers)), items)
        harmful = last.harmful(self._least)
        row = _first_good(last, np.stack(answers), model, self._cost, harmful)
        reason = ""
        if not harmful[row]:
            reason = (
                f"the best set found costs the task {last.drop(row).mean():.2f} and the others "
                f"{last.others[row].mean():.2f} on {items} fresh items: no specific harm"
            )
        return self._ranked(bench, screened, answers[row], harms, reason, share)

    def _ranked(
        self,
        bench: Bench,
        screened: Screened,
        final: Bools,
        harms: dict[int, tuple[float, float, float]],
        reason: str,
        share: float,
    ) -> Ranking:
        effects = screened.target.copy()
        intervals = np.full((len(effects), 2), np.nan)
        for place, (low, effect, high) in harms.items():
            effects[screened.short[place]] = effect
            intervals[screened.short[place]] = low, high
        contrast = effects - screened.weight * screened.others
        members = screened.short[final]
        first = members[np.argsort(contrast[members], kind="stable")]
        rest = [c for c in np.argsort(contrast, kind="stable") if c not in set(first.tolist())]
        order = tuple(int(column) for column in (*first, *rest))
        universal = tuple(
            int(column)
            for column in np.argsort(screened.others, kind="stable")
            if screened.others[column] <= -self._least / 2
            and screened.universal[column] >= _OFTEN
            and column not in set(first.tolist())
        )
        record = {
            "rows": bench.rows,
            "budget": self._budget,
            "cost": self._cost,
            "least": self._least,
            "contrast": self._contrast,
            "gradients": self._gradients,
            "share": share,
            "response": bench.response,
        }
        return Ranking(
            effects,
            order,
            () if reason else tuple(int(column) for column in first),
            reason,
            record,
            intervals=intervals,
            frequency=screened.frequency,
            others=screened.others,
            universal=universal,
            additivity=screened.additivity,
        )


def _knock_out(
    bench: Bench, promising: Promising, rows: int
) -> Generator[Plan, Measurement, Bools]:
    """Measures sets on fresh items, three times, and each time keeps the better half.

    What the joint rounds foretold counts as some items more: few items alone would pick by luck.
    """
    sets = promising.sets
    foretold, errors = promising.model.values(sets), promising.model.errors(sets)
    task = np.zeros((len(sets), 0))
    others = np.zeros((len(sets), 0))
    for _ in range(3):
        affordable = rows // 3 // bench.bundle_rows(1)
        fit = slice(max(1, affordable // _ENTERING - 1))  # the best come first
        sets, foretold, errors = sets[fit], foretold[fit], errors[fit]
        task, others = task[fit], others[fit]
        items = max(1, affordable // (len(sets) + 1))
        table = yield from bench.crossed(promising.screened.masks(sets), items)
        task, others = np.hstack([task, table.task]), np.hstack([others, table.others])
        worth, _ = _blended(task - bench.weight * others, foretold, errors)
        better = np.argsort(-worth, kind="stable")[: max(1, len(sets) // 2)]
        sets, foretold, errors = sets[better], foretold[better], errors[better]
        task, others = task[better], others[better]
    winner: Bools = sets[0]
    return winner


def _with(members: Bools, more: list[int], k: int) -> Bools:
    """The set with as many of `more` as there is room for."""
    larger = members.copy()
    for place in more:
        larger[place] |= larger.sum() < k
    return larger


def _blended(measured: Floats, foretold: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Joins means over fresh items with forecasts, each weighed by its precision.

    Args:
        measured: `(sets, items)`.
        foretold: `(sets,)`.
        errors: Standard errors of the forecasts, `(sets,)`.

    Returns:
        The means and their standard errors, `(sets,)`.
    """
    items = measured.shape[1]
    # one imagined item more keeps the spread of equal answers from being nothing
    spread = (measured.var(axis=1) * items + _IMAGINED**2) / (items + 1)
    seen, believed = items / spread, 1 / (np.square(errors) + _MISFIT**2)
    means: Floats = (measured.mean(axis=1) * seen + foretold * believed) / (seen + believed)
    return means, 1 / np.sqrt(seen + believed)


def _first_good(
    table: Table, sets: Bools, model: PairwiseModel, cost: float, harmful: Bools
) -> int:
    """The first set that the best one does not surely beat; a harmful one if there is any."""
    specifics, foretold = table.specifics(), model.values(sets)
    worth, _ = _blended(specifics, foretold, model.errors(sets))
    allowed = harmful if harmful.any() else ~harmful
    best = int(np.argmax(np.where(allowed, worth, -np.inf)))
    behind, error = _blended(
        specifics[best] - specifics,
        foretold[best] - foretold,
        model.errors(sets, beside=sets[best]),
    )
    fewer = sets[best].sum() - sets.sum(axis=1)
    margin = np.maximum(cost * np.maximum(1, fewer), _CLOSE * error)
    good = (behind <= margin) | (np.arange(len(sets)) == best)
    return int(np.argmax(good & allowed))
