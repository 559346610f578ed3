"""Measures what components keep of a task while all others of their kinds are ablated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from broca import designs
from broca.components import ComponentSet
from broca.measurement import Execute, Floats
from broca.results.base import Interval
from broca.results.sufficiency import ENOUGH, KeptCurve, KeptSet, KeptWithout, Sufficiency
from broca.verification.evidence import Scope
from broca.verification.statistics import Aggregate, holm, interval_of, paired_test, unseen
from broca.verification.trial import Places, Trial

RANDOM_SETS = 19
"""Number of random sets of the set's size, of which none may keep as much at p 0.05."""

_RANDOM_ORDERS = 3
"""Number of random orders of all components whose mean curve is shown."""

PEER_ROWS = 400
"""Maximum number of rows of each ranking by gradients."""

_FEWEST = 8
"""Minimum number of items of a task without chance; where guessing scores half, twice as many."""

Kept = frozenset[int]
"""Columns that stay intact."""


def kept_grid(size: int, count: int) -> tuple[int, ...]:
    """Returns 0, 1, 2, 3, 5, 8, ... up to all `count` components, with the `size` of the set."""
    numbers = [1, 2]
    while numbers[-1] < count:
        numbers.append(numbers[-1] + numbers[-2])
    return tuple(sorted({0, *(number for number in numbers if number < count), size, count}))


def pool_of(components: ComponentSet, columns: Sequence[int]) -> list[int]:
    """Returns the columns of all components of the kinds of a set."""
    kinds = {components[column].kind for column in columns}
    return [column for column, part in enumerate(components) if part.kind in kinds]


def sufficiency_items(
    trial: Trial, rows: int, components: ComponentSet, columns: Sequence[int], *, kinds: int
) -> tuple[Places | None, int]:
    """Returns the items that some rows allow, and the largest number of rows on them.

    Args:
        trial: The tasks.
        rows: The rows, those of rankings by gradients included.
        components: All components of the model.
        columns: The set.
        kinds: Number of kinds of ablation.

    Returns:
        None, and the rows of the fewest items of the task, if the rows do not suffice for these.
    """
    grid = len(kept_grid(len(columns), len(pool_of(components, columns))))
    sets = kinds * (grid + RANDOM_SETS) + (2 + _RANDOM_ORDERS) * grid + len(columns) + 1
    most = min(100, len(trial.places[trial.task]))
    fewest = math.ceil(_FEWEST / (1 - trial.benchmarks[trial.task].chance))
    for items in range(most, min(most, fewest) - 1, -1):
        places = trial.smaller(items)
        others = sum(len(places[name]) for name in trial.others)
        needed = sets * items + (kinds * grid + 1) * others + 2 * PEER_ROWS
        if needed <= rows:
            return places, needed
    return None, needed


@dataclass(frozen=True)
class KeptMeasurer:
    """Measures what sets of components keep of a task and of the others.

    Attributes:
        trial: The tasks, judged by their intact scores.
        places: Their items.
        components: All components of the model.
        kinds: Measures plans under each kind of ablation, the claim's first.
        scope: Level, resamples and seed of the statistics.
    """

    trial: Trial
    places: Places
    components: ComponentSet
    kinds: Mapping[str, Execute]
    scope: Scope

    def measured(self, columns: Sequence[int], orders: Mapping[str, Sequence[int]]) -> Sufficiency:
        """Measures a set alone, the curves of several orders, and the set without each member.

        Args:
            columns: The set, in the order of the ranking.
            orders: Orders of all components, of which `ranking` begins with the set.
        """
        pool, whole, count = pool_of(self.components, columns), frozenset(columns), len(columns)
        draw = np.random.default_rng([self.scope.seed, 7])  # the same sets for every such set
        some = (draw.choice(pool, count, replace=False) for _ in range(RANDOM_SETS))
        drawn = [frozenset(one.tolist()) for one in some]
        grid, rng = kept_grid(count, len(pool)), np.random.default_rng([self.scope.seed, 5])
        nested = {name: self._nested(order, pool, grid) for name, order in orders.items()}
        random = [self._nested(rng.permutation(pool), pool, grid) for _ in range(_RANDOM_ORDERS)]
        without = [whole - {column} for column in columns]
        tasks = (self.trial.task, *self.trial.others)
        items, *other_items = (len(self.places[name]) for name in tasks)
        found = Sufficiency(len(pool), items, other_items=sum(other_items), grid=grid)
        for kind, execute in self.kinds.items():
            claimed = not found.sets
            asked = [*nested["ranking"], *drawn]
            if claimed:
                every = [*nested.values(), *random]
                asked += [*(one for order in every for one in order), *without]
            own = self.scores(self.trial.task, asked, pool, execute)
            if own is None:
                reason = f"{self.trial.task} may lose nothing without all {len(pool)} of their kind"
                reason = f"{reason} ({kind} ablation, {found.items} items)"
                return replace(found, reason=reason)
            measured = (
                self.scores(name, nested["ranking"], pool, execute) for name in self.trial.others
            )
            others = [scores for scores in measured if scores is not None]
            curves = [
                self._curve((name, kind, "task"), own.of(order), grid, own.least(order))
                for name, order in nested.items()
                if claimed or name == "ranking"
            ]
            if claimed:
                mean, least = (np.mean([*map(of, random)], axis=0) for of in (own.of, own.least))
                curves.append(self._curve(("random", kind, "task"), mean, grid, least))
                p_values = [own.p(whole, one) for one in without]
                beyond, least = own.of([whole]) - own.of(without), own.least(without, whole)
                lost = _intervals(beyond, own.level, least, p_values)
                names = (self.components.names[column] for column in columns)
                members = map(KeptWithout, names, own.intervals(without), lost, holm(p_values))
                found = replace(found, members=tuple(members))
            kept_by_others = None
            if others:
                weights = np.array([self.trial.weights.get(one.task, 1.0) for one in others])
                draws = [one.of(nested["ranking"]) for one in others]
                mean = np.average(draws, axis=0, weights=weights)
                bounds = np.array([one.least(nested["ranking"]) for one in others])
                least = np.sqrt(weights**2 @ bounds**2) / weights.sum()
                curves.append(self._curve(("ranking", kind, "others"), mean, grid, least))
                kept_by_others = curves[-1].kept[grid.index(count)]
            (kept,), by_random = own.intervals([whole]), own.of(drawn)[:, 0]
            # ties count against the set
            p = (1 + int(np.sum(by_random >= kept.value - 1e-12))) / (1 + len(by_random))
            enough = kept.low > ENOUGH and p <= self.scope.level
            line = KeptSet(kind, kept, kept_by_others, tuple(by_random.tolist()), p, enough)
            found = replace(found, sets=(*found.sets, line), curves=(*found.curves, *curves))
        return found

    def _nested(self, order: Iterable[int], pool: Sequence[int], grid: Sequence[int]) -> list[Kept]:
        """Returns the first k of the pool's columns in an order, for every k."""
        columns = [int(column) for column in order if column in pool]
        return [frozenset(columns[:k]) for k in grid]

    def scores(
        self, task: str, kept: Sequence[Kept], pool: Sequence[int], execute: Execute
    ) -> KeptScores | None:
        """Measures a task while only some columns of the pool are intact.

        Returns:
            What is kept; None if the task may lose nothing without the whole pool.
        """
        trial, scope, places = self.trial, self.scope, self.places[task]
        sets = list(dict.fromkeys([frozenset(pool), frozenset[int](), *kept]))
        masks = designs.of_sets([set(pool) - one for one in sets], len(self.components))
        values = trial.responses(execute, masks, {task: places})[task]
        count, rng = len(places), np.random.default_rng([scope.seed, 6, trial.number(task)])
        drawn = np.vstack([np.arange(count), rng.integers(count, size=(scope.resamples, count))])
        aggregate = trial.aggregation(task, values[0])
        if aggregate is None:
            scores = np.array([row[drawn].mean(axis=1) for row in values])
        else:
            scores = np.array([[aggregate(row[some], some) for some in drawn] for row in values])
        benchmark, floor = trial.benchmarks[task], scores[1]
        if benchmark.higher_is_better:
            floor = np.maximum(floor, benchmark.chance)
        room = scores[0] - floor
        least = interval_of(room[0], room[1:], level=scope.level).low
        if least <= 0:
            return None
        draws = (scores - floor) / np.maximum(room, least)
        kept_draws, rows = (dict(zip(sets, of, strict=True)) for of in (draws, values))
        return KeptScores(task, kept_draws, rows, sets[0], float(room[0]), scope.level, aggregate)

    def _curve(
        self, names: tuple[str, str, str], draws: Floats, grid: Sequence[int], least: Floats
    ) -> KeptCurve:
        """Returns a curve with both areas, by the trapezoidal rule over the shares of the grid.

        What was not seen may move all of a curve alike; `least` is how far, `(grid,)`.
        """
        widths, level = np.diff(grid) / grid[-1], self.scope.level
        area, distance, unseen_area = (
            widths @ (heights[1:] + heights[:-1]) / 2
            for heights in (draws, np.abs(1 - draws), least)
        )
        under, beyond = _intervals(np.array([area, distance]), level, float(unseen_area))
        beyond = replace(beyond, low=max(0.0, beyond.low))
        return KeptCurve(*names, tuple(_intervals(draws, level, least)), under, beyond)


@dataclass(frozen=True)
class KeptScores:
    """Kept performance of a task under several sets.

    Attributes:
        task: The task.
        draws: Kept performance by set: of the items, then of resampled items, `(1 + resamples,)`.
        rows: Responses by set, `(items,)`.
        every: The set of all columns, which keeps all by definition.
        room: Score of the intact model beyond that without all components.
        level: Level of the intervals.
        aggregate: The task's own aggregation; None if it is the mean.
    """

    task: str
    draws: Mapping[Kept, Floats]
    rows: Mapping[Kept, Floats]
    every: Kept
    room: float
    level: float
    aggregate: Aggregate | None

    def of(self, kept: Sequence[Kept]) -> Floats:
        """Returns the draws of several sets, `(sets, 1 + resamples)`."""
        return np.array([self.draws[one] for one in kept])

    def intervals(self, kept: Sequence[Kept]) -> list[Interval]:
        """Returns kept performance; the ends reach at least as far as what was not seen."""
        return _intervals(self.of(kept), self.level, self.least(kept))

    def least(self, kept: Sequence[Kept], beside: Kept | None = None) -> Floats:
        """Returns by how much items that were not seen may move what sets keep, `(sets,)`.

        Args:
            kept: The sets.
            beside: A set from whose performance the difference is meant.
        """
        before = self.rows[self.every if beside is None else beside]
        moved = [
            0.0
            if one == self.every
            else unseen(before, self.rows[one], level=self.level, aggregate=self.aggregate)
            for one in kept
        ]
        return np.array(moved) / self.room

    def p(self, kept: Kept, less: Kept) -> float:
        """Returns the paired p-value of no difference between two sets."""
        rows = self.rows
        return paired_test(rows[kept], rows[less], seed=7, aggregate=self.aggregate)[1]


def _intervals(
    draws: Floats, level: float, least: float | Floats = 0.0, p: float | Sequence[float] = 0.0
) -> list[Interval]:
    """Returns intervals of rows of draws; see `interval_of`."""
    ends, p_values = (np.broadcast_to(given, len(draws)).tolist() for given in (least, p))
    return [
        interval_of(row[0], row[1:], level=level, least=end, p=of_zero)
        for row, end, of_zero in zip(draws, ends, p_values, strict=True)
    ]
