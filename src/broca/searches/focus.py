"""Focus: screen groups cheaply, then settle by joint sets what screening cannot see.

Three facts decide its form. A row may have its own mask, so that rows and not masks are what
costs. Effects add up well enough to find who matters, and badly enough that the best set is not the
set of the best. And what every task needs wins any search that looks at one task alone. So:

1. a pilot finds the share of components whose loss the task partly survives;
2. screening halves the candidates round by round: fresh random masks over those that are left, on
   the task and on the others, rated by what the task loses beyond what the others lose;
3. joint rounds measure small sets from the short list and learn what sets are worth, pairs
   included; the next sets are those that may be the best;
4. the best meet on fresh items under the task's own metric, in a knock-out;
5. every member of the winner has to show what it adds, or what it does alone; else it goes.

The answer has at most k members, and none where no set does specific harm.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.plan import Measurement, Plan, Response
from broca.recovery import NonPositiveLasso, PairwiseModel
from broca.searches.base import OtherTask, Problem, Ranking, Story, Told

ROWS_PER_TASK = 800
"""Rows for each measured task, the task itself and each other one, where no budget is given."""

_FEWEST_ROWS = 300
"""Without other tasks; twice as many with them."""
_SHARES = (0.02, 0.05, 0.1, 0.2, 0.3)
_PILOT_ROWS = 16
_SPREAD = 0.7
"""Mask sizes vary by up to this factor's exponential around the size that the pilot chose."""
_SHORT = 16
_ALONE = 4
"""Places on the short list for those that harm the task most, whatever they do to others."""
_BUNDLE = 4
"""Rows of the task, and as many of others, for a set in a joint round."""
_ROUNDS = 6
_POOL = 12
_SPENT = {"intact": 0.05, "screen": 0.18, "joint": 0.36, "knock-out": 0.18}
"""Parts of the budget; the knock-out and the proof of members share the rest."""

_RESAMPLES = 20
_OFTEN = 0.9
"""Share of resamples in which the others need a component that is called universal."""
_NOTHING = 0.01
"""An effect in screening below which a component does nothing."""
_SURE = 1.3
"""Standard errors by which a member that does nothing alone must add to the others."""

_CLOSE = 0.7
"""Standard errors by which a set may stay behind the best and still be preferred as the simpler."""

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Asking = Generator[Plan, Measurement, Any]


class Focus(Told):
    """Finds the small set whose loss harms the task most beyond what it does to the others.

    Args:
        problem: What to solve. Without `rows` it spends 800 for each measured task.
        cost: Specific drop that each further member of a set must add.
        least: Least drop of the task, and of the task beyond the others, that is a finding.
    """

    def __init__(self, problem: Problem, *, cost: float = 0.02, least: float = 0.1) -> None:
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
        self._problem = problem
        self._budget = budget
        self._cost = cost
        self._least = least
        super().__init__(self._tell_story())

    def _tell_story(self) -> Story:
        problem = self._problem
        bench = _Bench(problem, self._budget)
        yield from bench.measure_intact(int(_SPENT["intact"] * self._budget))
        share = yield from _pilot(bench)
        screened = yield from _screen(bench, share, int(_SPENT["screen"] * self._budget))
        joint = yield from self._joint_rounds(bench, screened)
        winner = yield from _knock_out(bench, screened, joint)
        return (yield from self._prove(bench, screened, winner, share))

    def _joint_rounds(
        self, bench: _Bench, screened: _Screened
    ) -> Generator[Plan, Measurement, Bools]:
        """Learns what small sets are worth; returns the most promising, `(sets, short list)`."""
        rng, k, count = bench.rng, self._problem.k, len(screened.short)
        rows = int(_SPENT["joint"] * self._budget)
        per_round = max(4, rows // _ROUNDS // bench.bundle_rows(_BUNDLE))
        model = PairwiseModel(count, largest=min(k, count), cost=self._cost)
        sets = np.zeros((0, count), dtype=bool)
        worth = np.zeros(0)
        for number in range(_ROUNDS):
            if number == 0:
                alone = np.eye(count, dtype=bool)[:per_round]
                mixed = _random_sets(max(0, per_round - count), count, k, rng)
                proposed = np.vstack([alone, mixed])
            else:
                starts = _random_sets(per_round, count, k, rng)
                proposed = np.stack([model.draw(start, rng) for start in starts])
            drops, others = yield from bench.bundles(screened.masks(proposed), _BUNDLE)
            sets = np.vstack([sets, proposed])
            worth = np.concatenate([worth, drops - others])
            model.fit(sets, worth)
        climbed = [model.best(start) for start in _random_sets(4 * _POOL, count, k, rng)]
        candidates = np.unique(np.vstack([sets, climbed]), axis=0)
        candidates = candidates[candidates.any(axis=1)]
        chosen: Bools = candidates[np.argsort(-model.values(candidates), kind="stable")[:_POOL]]
        return chosen

    def _prove(
        self, bench: _Bench, screened: _Screened, winner: Bools, share: float
    ) -> Generator[Plan, Measurement, Ranking]:
        """Asks of each member what it adds and what it does alone; settles the set and its size."""
        problem = self._problem
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
        items = max(4, bench.left // (bench.bundle_rows(1) * (len(trials) + 6)))
        table = yield from bench.crossed(screened.masks(np.stack(trials)), items)
        without = table.slice(1, 1 + len(inside))
        single = table.slice(1 + len(inside), len(trials))
        adds = table.specific(0)[None] - without.specifics()
        harms = {place: single.interval(row) for row, place in enumerate(alone)}
        lasting = {
            place
            for row, (place, (_, effect, high)) in enumerate(harms.items())
            if effect <= -self._least / 2
            and high < 0
            and single.specific(row).mean() > 0
            and screened.contrast[place] <= -self._least / 2
        }
        kept = {
            int(place)
            for row, place in enumerate(inside)
            if place in lasting or adds[row].mean() >= max(self._cost, _SURE * _error(adds[row]))
        }
        more = [place for place in rated if place in lasting]
        pruned = winner.copy()
        pruned[[place for place in inside if place not in kept]] = False
        answers = [_with(pruned, more, problem.k), pruned, _with(winner, more, problem.k), winner]
        answers = [one for one in answers if one.any()]
        last = yield from bench.crossed(screened.masks(np.stack(answers)), items)
        row = _first_good(last, self._cost)
        final, drop, specific = answers[row], last.drop(row), last.specific(row)
        error = _error(specific)
        reason = ""
        if not final.any() or drop.mean() < self._least or specific.mean() - 1.645 * error <= 0:
            reason = (
                f"the best set found costs the task {drop.mean():.2f} and the others "
                f"{drop.mean() - specific.mean():.2f} on {items} fresh items: no specific harm"
                if final.any()
                else "no set of at most k components harms the task alone"
            )
        return self._ranked(bench, screened, final, harms, reason, share)

    def _ranked(
        self,
        bench: _Bench,
        screened: _Screened,
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
        contrast = effects - screened.others
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
        )


@dataclass(frozen=True)
class _Screened:
    """What screening found.

    Attributes:
        target: Effect of each component on the task, `(components,)`.
        others: Mean effect on the others, `(components,)`.
        short: Columns of the short list.
        frequency: Share of resamples in which the task needs each component, `(components,)`.
        universal: Share of resamples in which the others need it, `(components,)`.
    """

    target: Floats
    others: Floats
    short: NDArray[np.intp]
    frequency: Floats
    universal: Floats

    @property
    def contrast(self) -> Floats:
        """Effect on the task beyond that on the others, of the short list."""
        beyond: Floats = (self.target - self.others)[self.short]
        return beyond

    def masks(self, sets: Bools) -> Bools:
        """Masks over all components of sets over the short list."""
        masks = np.zeros((len(sets), len(self.target)), dtype=bool)
        masks[:, self.short] = sets
        return masks


@dataclass(frozen=True)
class _Table:
    """Drops of sets on the same rows: the task's, and as many of the others in turn.

    Attributes:
        task: `(sets, rows)`.
        others: `(sets, rows)`; zero without other tasks.
    """

    task: Floats
    others: Floats

    def drop(self, row: int) -> Floats:
        """The task's drops of one set."""
        drops: Floats = self.task[row]
        return drops

    def specific(self, row: int) -> Floats:
        """The task's drops beyond the others', row by row."""
        drops: Floats = self.task[row] - self.others[row]
        return drops

    def specifics(self) -> Floats:
        """The same of all sets, `(sets, rows)`."""
        return self.task - self.others

    def slice(self, first: int, last: int) -> _Table:
        """Some of the sets."""
        return _Table(self.task[first:last], self.others[first:last])

    def interval(self, row: int) -> tuple[float, float, float]:
        """Effect of one set on the task with its 90 % interval: low, effect, high."""
        count = self.task.shape[1]
        effect = -float(self.task[row].mean())
        # one imagined row more keeps the spread of equal answers from being nothing
        spread = float(np.sqrt((self.task[row].var() * count + 0.25) / (count + 1)))
        half = 1.645 * spread / np.sqrt(count)
        return effect - half, effect, effect + half


@dataclass
class _Bench:
    """Measures masks on the task and on the others against the intact model, and keeps count."""

    problem: Problem
    budget: int
    rows: int = 0
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.problem.seed, 0xF0C5])
        self.response: Response | None = "probability" if self.problem.continuous else None
        self._intact: dict[int, float] = {}
        self._queues: dict[tuple[str, str], list[int]] = {}
        self._turn = 0
        problem = self.problem
        own = OtherTask("", problem.items, problem.confirm)
        self._tasks = {"": own, **{other.name: other for other in problem.others}}
        self._pools = {name: task.items for name, task in self._tasks.items()}

    @property
    def left(self) -> int:
        """Rows of the budget that are not spent."""
        return self.budget - self.rows

    def bundle_rows(self, size: int) -> int:
        """Rows of a bundle: of the task, and as many of the others if there are any."""
        return size * (2 if self.problem.others else 1)

    def measure_intact(self, rows: int) -> Asking:
        """Measures the intact model on the items that screening will use: their fixed effects."""
        each = max(4, rows // len(self._tasks))
        self._pools = {
            name: self.rng.permutation(task.items)[:each] for name, task in self._tasks.items()
        }
        items = np.concatenate(list(self._pools.values()))
        none = np.zeros((1, self.problem.components), dtype=bool)
        responses = yield from self._ask(none, np.zeros(len(items), dtype=np.intp), items)
        self._intact = dict(zip(items.tolist(), responses.tolist(), strict=True))

    def drops(self, masks: Bools) -> Asking:
        """What every mask costs the task on one item, `(masks,)`."""
        items = np.array([self._next("", "items") for _ in masks], dtype=np.intp)
        responses = yield from self._ask(masks, np.arange(len(masks)), items)
        return self._lost(items, responses)

    def bundles(self, masks: Bools, size: int) -> Asking:
        """Mean drop of every mask over some items, of the task and of the others.

        Returns:
            Two vectors `(masks,)`; the second is zero without other tasks.
        """
        items: list[int] = []
        for _ in masks:
            items += [self._next("", "items") for _ in range(size)]
            if self.problem.others:
                items += [self._next(self._next_other(), "items") for _ in range(size)]
        asked = np.array(items, dtype=np.intp)
        index = np.repeat(np.arange(len(masks)), self.bundle_rows(size))
        responses = yield from self._ask(masks, index, asked)
        lost = self._lost(asked, responses).reshape(len(masks), -1, size).mean(axis=2)
        return lost[:, 0], lost[:, 1] if self.problem.others else np.zeros(len(masks))

    def crossed(self, masks: Bools, items: int) -> Asking:
        """Drops of masks on the same fresh items, by the task's own metric; a `_Table`."""
        names = [""] * items
        if self.problem.others:
            names += [self._next_other() for _ in range(items)]
        asked = np.array([self._next(name, "confirm") for name in names], dtype=np.intp)
        every = np.vstack([np.zeros((1, masks.shape[1]), dtype=bool), masks])
        index = np.repeat(np.arange(len(every)), len(asked))
        responses = yield from self._ask(
            every, index, np.tile(asked, len(every)), response="accuracy"
        )
        table = responses.reshape(len(every), -1)
        lost = table[0] - table[1:]
        task = lost[:, :items]
        return _Table(task, lost[:, items:] if self.problem.others else np.zeros_like(task))

    def _ask(
        self,
        masks: Bools,
        index: NDArray[np.intp],
        items: NDArray[np.intp],
        *,
        response: Response | None = None,
    ) -> Generator[Plan, Measurement, Floats]:
        plan = Plan(masks, index, items, response=response or self.response)
        self.rows += plan.cost
        measurement = yield plan
        return measurement.responses

    def _lost(self, items: NDArray[np.intp], responses: Floats) -> Floats:
        return np.array([self._intact[item] for item in items.tolist()]) - responses

    def _next(self, name: str, part: str) -> int:
        """The next item of a task, each as often as the others."""
        queue = self._queues.setdefault((name, part), [])
        if not queue:
            pool = self._pools[name] if part == "items" else self._tasks[name].confirm
            if not len(pool):  # no items were put aside: those of the search must do
                pool = self._tasks[name].items
            queue += self.rng.permutation(pool).tolist()
        return int(queue.pop())

    def _next_other(self) -> str:
        """The next other task, in turn."""
        names = [other.name for other in self.problem.others]
        self._turn += 1
        return names[self._turn % len(names)]


def _pilot(bench: _Bench) -> Generator[Plan, Measurement, float]:
    """Finds the share of components at which the task's response varies most.

    Too few leave it intact, too many destroy it: both say nothing.
    """
    count = bench.problem.components
    shares = sorted({max(1, round(share * count)) for share in _SHARES})
    best, chosen = -1.0, shares[0]
    rows = min(_PILOT_ROWS, bench.budget // 100)
    for size in shares:
        masks = _random_masks(np.full(rows, size), np.arange(count), count, bench.rng)
        drops = yield from bench.drops(masks)
        if drops.std() > best:
            best, chosen = float(drops.std()), size
    return chosen / count


def _screen(bench: _Bench, share: float, rows: int) -> Generator[Plan, Measurement, _Screened]:
    """Halves the candidates until a short list is left; every round keeps the better half.

    Where the rows are few the rounds are fewer, and keep less.
    """
    count = bench.problem.components
    alive = np.arange(count)
    masks_in_all = rows // bench.bundle_rows(1)
    halvings = int(np.ceil(np.log2(max(2.0, count / _SHORT))))
    rounds = max(1, min(halvings, masks_in_all // _SHORT))
    per_round = masks_in_all // rounds
    shrink = min(1.0, _SHORT / count) ** (1 / rounds)
    masks = np.zeros((0, count), dtype=bool)
    task, others = np.zeros(0), np.zeros(0)
    effects, general = np.zeros(count), np.zeros(count)
    for number in range(rounds):
        sizes = share * len(alive) * np.exp(bench.rng.uniform(-_SPREAD, _SPREAD, per_round))
        sizes = np.clip(np.round(sizes), 1, len(alive)).astype(int)
        fresh = _random_masks(sizes, alive, count, bench.rng)
        lost, lost_elsewhere = yield from bench.bundles(fresh, 1)
        masks = np.vstack([masks, fresh])
        task, others = np.concatenate([task, lost]), np.concatenate([others, lost_elsewhere])
        effects[alive] = _effects(masks[:, alive], -task)
        general[alive] = _effects(masks[:, alive], -others) if bench.problem.others else 0.0
        last = number == rounds - 1
        keep = _SHORT if last else max(_SHORT, round(count * shrink ** (number + 1)))
        alive = _best(alive, effects, general, keep)
    needed = _often(masks, -task, bench.rng)
    return _Screened(effects, general, alive, needed, _often(masks, -others, bench.rng))


def _effects(masks: Bools, responses: Floats) -> Floats:
    """Effect of each column: never positive, and graded where the Lasso alone would say zero."""
    lasso = NonPositiveLasso().fit(masks, responses).coef_
    centered = masks - masks.mean(axis=0)
    slope = centered.T @ (responses - responses.mean()) / (masks.var(axis=0).sum() + len(masks))
    graded: Floats = lasso + 0.1 * np.minimum(slope, 0.0)
    return graded


def _often(masks: Bools, responses: Floats, rng: np.random.Generator) -> Floats:
    """How often each component has an effect when the rows are drawn anew, `(components,)`."""
    found = np.zeros(masks.shape[1])
    for _ in range(_RESAMPLES):
        rows = rng.integers(len(masks), size=len(masks))
        found += NonPositiveLasso().fit(masks[rows], responses[rows]).coef_ < -_NOTHING
    return found / _RESAMPLES


def _best(alive: NDArray[np.intp], effects: Floats, general: Floats, keep: int) -> NDArray[np.intp]:
    """The candidates of most contrast, and a few that harm the task most whatever else they do."""
    contrast = effects[alive] - general[alive]
    chosen = alive[np.argsort(contrast, kind="stable")][: max(1, keep - _ALONE)].tolist()
    for column in alive[np.argsort(effects[alive], kind="stable")].tolist():
        if len(chosen) >= min(keep, len(alive)):
            break
        if column not in chosen:
            chosen.append(column)
    return np.array(chosen, dtype=np.intp)


def _knock_out(
    bench: _Bench, screened: _Screened, sets: Bools
) -> Generator[Plan, Measurement, Bools]:
    """Measures sets on fresh items, three times, and each time keeps the better half."""
    rows = int(_SPENT["knock-out"] * bench.budget)
    task = np.zeros((len(sets), 0))
    others = np.zeros((len(sets), 0))
    for _ in range(3):
        items = max(2, rows // 3 // bench.bundle_rows(len(sets) + 1))
        table = yield from bench.crossed(screened.masks(sets), items)
        task, others = np.hstack([task, table.task]), np.hstack([others, table.others])
        worth = task.mean(axis=1) - others.mean(axis=1)
        better = np.argsort(-worth, kind="stable")[: max(1, len(sets) // 2)]
        sets, task, others = sets[better], task[better], others[better]
    winner: Bools = sets[0]
    return winner


def _with(members: Bools, more: list[int], k: int) -> Bools:
    """The set with as many of `more` as there is room for."""
    larger = members.copy()
    for place in more:
        larger[place] |= larger.sum() < k
    return larger


def _first_good(table: _Table, cost: float) -> int:
    """The first set that the best one does not surely beat."""
    specifics = table.specifics()
    best = specifics[int(np.argmax(specifics.mean(axis=1)))]
    for row, specific in enumerate(specifics):
        behind = best - specific
        if behind.mean() <= max(cost, _CLOSE * _error(behind)):
            return row
    raise AssertionError("the best set is not behind itself")


def _error(values: Floats) -> float:
    """Standard error of a mean."""
    return float(values.std() / np.sqrt(len(values)))


def _random_masks(
    sizes: NDArray[Any], among: NDArray[np.intp], components: int, rng: np.random.Generator
) -> Bools:
    """One mask of each size, its members drawn from `among`."""
    masks = np.zeros((len(sizes), components), dtype=bool)
    for mask, size in zip(masks, sizes, strict=True):
        mask[rng.choice(among, int(size), replace=False)] = True
    return masks


def _random_sets(number: int, count: int, k: int, rng: np.random.Generator) -> Bools:
    """Sets of 1 to k members; those rated best come more often."""
    weights = np.exp(-np.arange(count) / 10.0)
    sets = np.zeros((number, count), dtype=bool)
    for one in sets:
        size = int(rng.integers(1, min(k, count) + 1))
        one[rng.choice(count, size, replace=False, p=weights / weights.sum())] = True
    return sets
