"""The evidence for a claim: responses without several sets, and the statistics of their drops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from msgspec import Meta

from broca.measurement import Floats
from broca.options.base import Count, Options, Seed
from broca.results.base import Interval
from broca.results.verification import TaskDrop
from broca.verification import statistics
from broca.verification.trial import Places, Trial

SCREEN = 16
"""Number of the task's first items, which are enough for most random sets."""


class Scope(Options):
    """The size of a verification.

    Attributes:
        controls: Maximum number of random sets of each kind.
        control_items: Number of items of the task for a random set that is close, and of all others
            together; None for all report items.
        member_items: Number of items of the task for each member's contribution; None for all.
        beside_items: Number of items of all other tasks together on which each member is ablated
            alone; 0 for none.
        ablations: Whether the claim is tested under every kind of ablation.
        failure_items: Number of items of each task whose outputs are examined; 0 for none.
        rows: Maximum number of rows; random sets take what the other measurements leave. None for
            no maximum.
        level: Level of tests and intervals.
        resamples: Number of bootstrap resamples.
        seed: Seed of controls and resampling; `broca.verify` puts its own `seed` in its place.

    Raises:
        BadInput: A value has another type, or is out of range.
    """

    controls: Annotated[int, Meta(ge=0)] = statistics.CONTROLS
    control_items: Count | None = None
    member_items: Count | None = None
    beside_items: Annotated[int, Meta(ge=0)] = 60
    ablations: bool = True
    failure_items: Annotated[int, Meta(ge=0)] = 100
    rows: Annotated[int, Meta(ge=0)] | None = None
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    resamples: Count = 2000
    seed: Seed = 0

    def within(self, rows: int, *, members: int, tasks: int) -> Scope:
        """Returns the scope with as many items as fit into some rows.

        Args:
            rows: The rows.
            members: Number of components of the set.
            tasks: Number of tasks.
        """
        return replace(
            self,
            rows=rows,
            control_items=min(100, max(SCREEN, rows // 72)),
            member_items=min(200, max(2 * SCREEN, rows // (16 * max(1, members)))),
            beside_items=min(60, rows // (16 * max(1, members))),
            failure_items=min(40, max(4, rows // (32 * tasks))),
        )


@dataclass(frozen=True)
class Evidence:
    """Responses of tasks without several sets.

    A drop is that of one row of a task's responses beyond another, by default of the second row
    beyond the first, which is the intact model's.

    Attributes:
        trial: The tasks and their items.
        scope: Level, resamples and seed of the statistics.
        responses: Responses by task, `(sets, items)`.
    """

    trial: Trial
    scope: Scope
    responses: Mapping[str, Floats]

    def on(self, places: Places) -> Evidence:
        """Returns the evidence on some of the report items."""
        picked = {
            name: self.responses[name].take(np.searchsorted(self.trial.places[name], some), axis=1)
            for name, some in places.items()
        }
        return replace(self, responses=picked)

    def scores(self, row: int) -> dict[str, float]:
        """Returns the score of every task without a set."""
        return {name: self.trial.score(name, rows[row]) for name, rows in self.responses.items()}

    def lost_skill(self, name: str, after: int = 1) -> float:
        """Returns the loss of a task from the intact model, above guessing."""
        scores = (self.trial.score(name, self.responses[name][row]) for row in (0, after))
        return self.trial.lost_skill(name, *scores)

    def drop(self, name: str, after: int = 1, *, before: int = 0) -> Interval:
        """Returns the drop of a task with its interval."""
        return self.compared(name, after, before=before)[0]

    def compared(
        self, name: str, after: int = 1, *, before: int = 0
    ) -> tuple[Interval, str, float]:
        """Returns the drop of a task with its interval, its test and the two-sided p-value."""
        rows, scope = self.responses[name], self.scope
        own = self.trial.aggregation(name, rows[before])
        return statistics.paired_drop(
            rows[before], rows[after], level=scope.level, resamples=scope.resamples,
            seed=scope.seed, aggregate=own,
        )  # fmt: skip

    def tested(self, name: str) -> TaskDrop:
        """Returns the drop of a task with its interval and its uncorrected test."""
        before, after = self.responses[name][:2]
        drop = self.trial.drop(name, *(self.trial.score(name, rows) for rows in (before, after)))
        whole, test, p = self.compared(name)
        return replace(drop, drop=whole.value, ci=(whole.low, whole.high), test=test, p=p, p_holm=p)

    def contrast(self) -> tuple[Interval | None, Interval | None]:
        """Returns the off-target drop and the specific drop; None without other tasks.

        Both are of skill, above guessing. Where all items of a task changed alike, its share of the
        interval is that of `unseen`; the ends reach at least as far as the other tasks' bounds.
        """
        if not self.trial.others:
            return None, None
        names = (self.trial.task, *self.trial.others)
        losses = np.array([self.lost_skill(name) for name in names])
        level, pairs = self.scope.level, [self.responses[name][:2] for name in names]
        aggregates = list(map(self.trial.aggregation, names, (before for before, _ in pairs)))
        draws = np.array([
            statistics.bootstrap_drops(
                *pairs[number], aggregate=aggregates[number], floor=self.trial.floor(name),
                resamples=self.scope.resamples, seed=[self.scope.seed, self.trial.number(name)],
            )
            for number, name in enumerate(names)
        ])  # fmt: skip
        alike = np.array([np.ptp(before - after) == 0 for before, after in pairs])
        bounds = np.diag([
            statistics.unseen(*pair, level=level, aggregate=aggregate)
            for pair, aggregate in zip(pairs, aggregates, strict=True)
        ])  # fmt: skip
        parts = map(self.trial.specific, (losses, draws, bounds * alike, bounds * ~alike))
        mean, specific = (
            statistics.interval_of(
                float(value), drawn, level=level, reach=float(np.linalg.norm(same)),
                least=float(np.linalg.norm(rest)),
            )
            for value, drawn, same, rest in zip(*parts, strict=True)
        )  # fmt: skip
        return mean, specific
