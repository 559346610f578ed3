"""Settling: compares the most promising sets on fresh items, and tests the winner's members."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broca.measurement import Measurement, Plan
from broca.recovery import PairwiseModel
from broca.searches.focus.joint import Promising
from broca.searches.measuring import Bools, Floats, Measuring, SetDrops

Harms = dict[int, tuple[float, float, float]]
"""By place on the short list: low end, effect and high end (90 %) of ablating a component alone."""

_HEATS = 3
"""Number of heats of the knock-out."""
_ENTERING = 8
"""Minimum number of items of the first heat; a small budget admits fewer sets."""
_FEWEST_ITEMS = 4
"""Minimum number of items for members; a small budget tests fewer of them alone."""
_MISFIT = 0.1
"""Standard error of forecasts in addition to the statistical error, because the model has only
pairs and the response is not the metric."""
_EVIDENT = 1.645
"""Number of standard errors by which the worth of a finding must exceed zero, on the last items and
by all earlier measurements."""
_SURELY = 2.0
"""Number of standard errors by which a member must exceed its cost to stay without further
tests."""
_CLOSE = 1.0
"""Number of standard errors by which a simpler set may be worse than the best and still be
preferred."""


@dataclass(frozen=True)
class Winner:
    """The winner of the knock-out and its measurements.

    Attributes:
        members: The members, `(short list,)`.
        task: Drops of the task on fresh items, `(items,)`.
        others: Drops of the others, `(items,)`.
        worth: Worth by these items and by the forecast.
        error: Standard error of the worth.
    """

    members: Bools
    task: Floats
    others: Floats
    worth: float
    error: float

    def surely_below(self, least: float) -> bool:
        """Whether its worth is significantly below `least`."""
        return self.worth + _SURELY * self.error < least


@dataclass(frozen=True)
class Settled:
    """The answer.

    Attributes:
        members: The selected set, `(short list,)`.
        harms: Effects of the components that were ablated alone.
        reason: Why the set is no finding; empty if it is a finding.
    """

    members: Bools
    harms: Harms
    reason: str


@dataclass(frozen=True)
class _MemberTests:
    """Tests of members: their additions to the set, and the effects of components alone.

    Attributes:
        inside: Places of the members, `(members,)`.
        adds: Drop that each adds to the set, `(members,)`.
        errors: Standard errors of these drops, `(members,)`.
        harms: Effects of components alone.
        lasting: Places of the components that significantly harm alone, the highest ranked first.
    """

    inside: NDArray[np.intp]
    adds: Floats
    errors: Floats
    harms: Harms
    lasting: list[int]


def knock_out(
    measuring: Measuring, promising: Promising, rows: int, *, least: float
) -> Generator[Plan, Measurement, Winner]:
    """Measures sets on fresh items in heats, and keeps the better half after each.

    The forecasts of the joint rounds count like further items, because a few items alone would
    choose by chance. The heats end if the remaining sets are equal on every item.

    Args:
        measuring: Measures.
        promising: The result of the joint rounds.
        rows: Number of rows to measure.
        least: Minimum specific drop of a finding.
    """
    sets, before = promising.sets, measuring.rows
    predicted, errors = promising.model.values(sets), promising.model.errors(sets)
    met = SetDrops.of_none(len(sets), measuring.weight)
    for heat in range(_HEATS):
        affordable = rows // _HEATS // measuring.bundle_rows(1)
        fit = slice(max(1, affordable // _ENTERING - 1))  # the best sets come first
        sets, predicted, errors, met = sets[fit], predicted[fit], errors[fit], met.pick(fit)
        items = max(1, affordable // (len(sets) + 1))
        table = yield from measuring.crossed(promising.screened.masks(sets), items)
        met = met.joined(table)
        worth, error = _blended(met, met.specifics(), predicted, errors)
        better = np.argsort(-worth, kind="stable")[: max(1, len(sets) // 2)]
        sets, predicted, errors = sets[better], predicted[better], errors[better]
        met, worth, error = met.pick(better), worth[better], error[better]
        costs = met.specifics()
        equal = len(sets) > 1 and np.allclose(costs, costs[0]) and worth[-1] >= least
        if measuring.stop and equal and heat < _HEATS - 1:
            measuring.forgo(
                rows - (measuring.rows - before),
                f"the {len(sets)} best sets are equal on every item",
            )
            break
    return Winner(sets[0], met.task[0], met.others[0], float(worth[0]), float(error[0]))


def settle(
    measuring: Measuring,
    promising: Promising,
    winner: Winner,
    *,
    rows: int,
    cost: float,
    least: float,
) -> Generator[Plan, Measurement, Settled]:
    """Measures what each member adds and does alone; decides on the set and its size.

    If the winner's worth is significantly below `least`, nothing more is measured.

    Args:
        measuring: Measures the rows; the last comparison uses the remaining rows.
        promising: The result of the joint rounds.
        winner: The set that won the knock-out.
        rows: Rows for the members.
        cost: Minimum drop that each member must add.
        least: Minimum specific drop of a finding.
    """
    if measuring.stop and winner.surely_below(least):
        measuring.forgo(
            measuring.rows_left, f"the best set found is worth significantly less than {least:.2f}"
        )
        return Settled(winner.members, {}, _no_finding(winner.task, winner.others))
    tests = yield from _measure_members(measuring, promising, winner.members, rows, least)
    answers = _answers(winner.members, tests, cost, measuring.problem.k)
    items = max(1, measuring.rows_left // measuring.bundle_rows(len(answers) + 1))
    last = yield from measuring.crossed(promising.screened.masks(answers), items)
    predicted, errors = promising.model.values(answers), promising.model.errors(answers)
    worth, error = _blended(last, last.specifics(), predicted, errors)
    believed = (worth >= least) & (worth > _EVIDENT * error) & (last.task.mean(axis=1) > 0)
    harmful = believed | last.harmful(least)
    row = first_good(last, answers, promising.model, cost, harmful)
    reason = "" if harmful[row] else _no_finding(last.task[row], last.others[row])
    return Settled(answers[row], tests.harms, reason)


def _no_finding(task: Floats, others: Floats) -> str:
    """Returns why a set is no finding, from its drops of the task and of the others, `(items,)`."""
    return (
        f"the best set found costs the task {task.mean():.2f} and the others {others.mean():.2f} "
        f"on {len(task)} fresh items: no specific harm"
    )


def _measure_members(
    measuring: Measuring, promising: Promising, winner: Bools, rows: int, least: float
) -> Generator[Plan, Measurement, _MemberTests]:
    """Measures the set, the set without each member, and components alone, on the same items."""
    screened, model = promising.screened, promising.model
    inside = np.flatnonzero(winner)
    rated = [int(place) for place in np.argsort(screened.target[screened.short])]
    outside = [
        place
        for place in rated
        if not winner[place] and screened.target[screened.short[place]] <= -least / 4
    ]
    affordable = rows // measuring.bundle_rows(1)
    most_alone = max(1, affordable // _FEWEST_ITEMS - 1 - len(inside))
    alone = [*inside.tolist(), *outside][: min(most_alone, 2 * measuring.problem.k)]
    singles = np.eye(len(winner), dtype=bool)
    smaller = winner & ~singles[inside]
    trials = np.vstack([winner[None], smaller, singles[alone]])
    items = max(1, affordable // (len(trials) + 1))
    table = yield from measuring.crossed(screened.masks(trials), items)
    without = table.pick(slice(1, 1 + len(inside)))
    single = table.pick(slice(1 + len(inside), len(trials)))
    adds, errors = _blended(
        table,
        table.specific(0)[None] - without.specifics(),
        model.values(winner[None]) - model.values(smaller),
        model.errors(smaller, reference=winner),
    )
    harms = {place: single.interval(row) for row, place in enumerate(alone)}
    lasting = {
        place
        for row, (place, (_, effect, high)) in enumerate(harms.items())
        if effect <= -least / 2
        and high < 0
        and single.specific(row).mean() > 0
        and screened.contrast[place] <= -least / 2
    }
    return _MemberTests(inside, adds, errors, harms, [place for place in rated if place in lasting])


def _answers(winner: Bools, tests: _MemberTests, cost: float, k: int) -> Bools:
    """Returns the sets of the last comparison in order of preference, `(answers, short list)`.

    Members that do not add significantly are removed one by one, the smallest addition first.
    Components that significantly harm alone are removed last, and are put back.
    """
    worth = dict(zip(tests.inside.tolist(), tests.adds.tolist(), strict=True))
    sure = set(tests.inside[tests.adds - _SURELY * tests.errors > cost].tolist())
    leaving = sorted(set(worth) - sure, key=lambda place: (place in tests.lasting, worth[place]))
    gone = [leaving[:number] for number in range(len(leaving) + bool(sure))]
    if len(leaving) > 1:  # the order of the smallest additions is often random
        gone.append(leaving[1:2])
    answers = [winner]
    for places in gone:
        smaller = winner.copy()
        smaller[places] = False
        answers.append(_with(smaller, tests.lasting, k))
    distinct = list(np.unique(np.stack(answers), axis=0))
    distinct.sort(key=lambda answer: (-answer[tests.lasting].sum(), answer.sum()))
    return np.stack(distinct)


def _with(members: Bools, more: list[int], k: int) -> Bools:
    """Returns the set with as many of `more` as fit into k members."""
    larger = members.copy()
    for place in more:
        larger[place] |= larger.sum() < k
    return larger


def _blended(
    table: SetDrops, drops: Floats, predicted: Floats, errors: Floats
) -> tuple[Floats, Floats]:
    """Combines means over fresh items with forecasts, weighted by precision.

    Args:
        table: The table of the items.
        drops: Drops of the sets, `(sets, rows)`.
        predicted: Forecasts, `(sets,)`.
        errors: Standard errors of the forecasts, `(sets,)`.

    Returns:
        The means and their standard errors, `(sets,)`.
    """
    precision = 1 / np.square(table.errors(drops))
    prior = 1 / (np.square(errors) + _MISFIT**2)
    means: Floats = (drops.mean(axis=1) * precision + predicted * prior) / (precision + prior)
    return means, 1 / np.sqrt(precision + prior)


def first_good(
    table: SetDrops, sets: Bools, model: PairwiseModel, cost: float, harmful: Bools
) -> int:
    """Returns the first set that the best does not significantly beat, of the harmful if any.

    Args:
        table: Drops of the sets on fresh items.
        sets: The sets in order of preference, `(sets, short list)`.
        model: The model of their worth.
        cost: Minimum drop that each member must add.
        harmful: Whether each set does specific harm, `(sets,)`.
    """
    specifics, predicted = table.specifics(), model.values(sets)
    worth, _ = _blended(table, specifics, predicted, model.errors(sets))
    allowed = harmful if harmful.any() else ~harmful
    best = int(np.argmax(np.where(allowed, worth, -np.inf)))
    behind, error = _blended(
        table,
        specifics[best] - specifics,
        predicted[best] - predicted,
        model.errors(sets, reference=sets[best]),
    )
    fewer = sets[best].sum() - sets.sum(axis=1)
    margin = np.maximum(cost * np.maximum(1, fewer), _CLOSE * error)
    good = (behind <= margin) | (np.arange(len(sets)) == best)
    return int(np.argmax(good & allowed))
