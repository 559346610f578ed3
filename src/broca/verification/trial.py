"""Per-item scores of several tasks under masks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from broca.measurement import Bools, Execute, Floats, Ints, Plan
from broca.results.verification import Role, TaskDrop
from broca.tasks import Benchmark, Item
from broca.verification.statistics import Aggregate, Values, item_weights

Places = Mapping[str, Ints]
"""Positions of items in the bank, by task."""

_FEWEST = 5
"""Minimum number of items of each task when the others share a number of items."""

_BESIDE = 10
"""Maximum number of items of another task on which each member is ablated alone."""

_NOISE = 20
"""Number of items at which noise halves the weight of another task: about the variance of an item's
loss, divided by that of the losses of unrelated tasks."""


@dataclass(frozen=True)
class Trial:
    """Tasks with the items on which they are measured.

    Attributes:
        task: The claimed task.
        same_skill: Other tasks of the same capability.
        others: The tasks that should not suffer.
        benchmarks: All tasks by name.
        places: Report items of every task, as positions in the bank of the executor.
        items: The items of that bank.
        at_chance: Other tasks that the intact model cannot do: they can show no damage, and enter
            no mean.
        weights: Weight of each of the others in means; equal ones if empty.
    """

    task: str
    same_skill: tuple[str, ...]
    others: tuple[str, ...]
    benchmarks: Mapping[str, Benchmark]
    places: Places
    items: Sequence[Item] = ()
    at_chance: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All tasks, the claimed one first."""
        return (self.task, *self.same_skill, *self.others, *self.at_chance)

    def number(self, name: str) -> int:
        """Returns the number of a judged task in seeds: the order of the others changes none."""
        return (self.task, *sorted(self.others)).index(name)

    def judged(self, scores: Mapping[str, float]) -> Trial:
        """Returns the trial in which the others count by what they can lose.

        A task's weight is its score above chance, at most 1, times n / (n + 20) for n items.

        Args:
            scores: Score of every task on the intact model.
        """
        weights, at_chance = {}, []
        for name in self.names:
            benchmark, items = self.benchmarks[name], len(self.places[name])
            room = scores[name] - benchmark.chance if benchmark.higher_is_better else 1.0
            weights[name] = min(1.0, room) * items / (items + _NOISE)
            if name in self.others and self.guesses(name, scores[name]):
                at_chance.append(name)
        others = tuple(name for name in self.others if name not in at_chance)
        return replace(self, others=others, at_chance=tuple(at_chance), weights=weights)

    def specific(self, losses: Floats) -> tuple[Floats, Floats]:
        """Returns the weighted mean of the others' losses of skill, and the task's beyond it.

        Args:
            losses: Losses of skill of the task and of each of the others, `(1 + others, ...)`.
        """
        task, *rest = losses
        weights = [self.weights.get(name, 1.0) for name in self.others]
        others = np.average(rest, axis=0, weights=weights)
        return others, task - others

    def guesses(self, name: str, score: float, items: int | None = None) -> bool:
        """Whether a task's score is not above guessing.

        Args:
            name: The task.
            score: Its score.
            items: Number of items, spaced over the report items; all by default.
        """
        count = len(self.places[name]) if items is None else items
        weights = item_weights(self.aggregation(name, np.zeros(count)), count)
        equal = round(1 / float(weights @ weights))  # as many of equal weight vary as much
        return self.benchmarks[name].at_chance(score, items=equal)

    def floor(self, name: str) -> float:
        """Returns the score of guessing, below which a task loses no skill."""
        return self.benchmarks[name].chance or -math.inf

    def lost_skill(self, name: str, before: float, after: float) -> float:
        """Returns the loss of a task between two scores above guessing."""
        floor = self.floor(name)
        return self.benchmarks[name].loss(max(before, floor), max(after, floor))

    def drop(self, name: str, before: float, after: float) -> TaskDrop:
        """Returns the drop of a task between two scores, without statistics."""
        benchmark = self.benchmarks[name]
        roles: dict[str, Role] = {self.task: "task", **dict.fromkeys(self.same_skill, "same_skill")}
        roles |= dict.fromkeys(self.at_chance, "at_chance")
        return TaskDrop(
            task=name, role=roles.get(name, "other"), metric=benchmark.metric,
            items=len(self.places[name]), before=before, after=after,
            drop=benchmark.loss(before, after),
            chance=benchmark.chance if benchmark.higher_is_better else None,
        )  # fmt: skip

    def smaller(self, items: int | None) -> Places:
        """Returns `items` items of the task, of each of its skill, and of all others together.

        They are evenly spaced over the report items, so that the same call gives the same items.
        None stands for the number of the task's report items.
        """
        items = items or len(self.places[self.task])
        share = max(_FEWEST, items // max(1, len(self.others)))
        return {
            name: spread(self.places[name], share if name in self.others else items)
            for name in self.names
        }

    def at_most(self, items: int | None) -> Places:
        """Returns at most this many items of every task, evenly spaced over its report items.

        None stands for all items.
        """
        return {name: spread(self.places[name], items) for name in self.names}

    def judged_items(self, places: Places) -> int:
        """Returns the number of items of the task and of the others."""
        return sum(len(places[name]) for name in (self.task, *self.others))

    def beside(self, items: int) -> Places:
        """Returns at most 10 items of every task but the claimed one, `items` of all together."""
        names = self.names[1:]
        count = min(_BESIDE, items // max(1, len(names)))
        return {name: spread(self.places[name], count) for name in names if count}

    def responses(self, execute: Execute, masks: Bools, places: Places) -> dict[str, Values]:
        """Measures the responses of every task in `places`, `(masks, items)`; higher is better."""
        positions = np.concatenate(list(places.values())).astype(np.intp)
        measured = execute(Plan.crossed(masks, positions)).responses
        table = measured.reshape(len(masks), len(positions))
        ends = np.cumsum([len(task_places) for task_places in places.values()])
        return dict(zip(places, np.split(table, ends[:-1], axis=1), strict=True))

    def score(self, name: str, values: Values) -> float:
        """Returns a task's score from responses, in the direction of its metric."""
        return self._score(name, values, np.arange(len(values)), len(values))

    def loss(self, name: str, before: Values, after: Values) -> float:
        """Returns the loss of a task's score from responses before and after an ablation."""
        return self.benchmarks[name].loss(self.score(name, before), self.score(name, after))

    def aggregation(self, name: str, values: Values) -> Aggregate | None:
        """Returns the task's aggregation in the responses' direction; None if it is the mean."""
        sign = 1.0 if self.benchmarks[name].higher_is_better else -1.0
        probe = np.random.default_rng(0).random(len(values))  # equal ones hide unequal weights
        if abs(sign * self.score(name, probe) - float(probe.mean())) < 1e-9:
            return None
        return lambda responses, drawn: sign * self._score(name, responses, drawn, len(values))

    def _score(self, name: str, values: Values, drawn: Ints, count: int) -> float:
        """Returns a score from responses to some of `count` items, spaced over the report items."""
        benchmark = self.benchmarks[name]
        scores = values if benchmark.higher_is_better else -values
        items = [self.items[position] for position in spread(self.places[name], count)[drawn]]
        return benchmark.aggregate(scores.tolist(), items)


def spread(positions: Sequence[int] | Ints, count: int | None) -> Ints:
    """Returns at most some positions, evenly spaced: all subtasks of a group are among them."""
    positions = np.asarray(positions, dtype=np.intp)
    if count is None or count >= len(positions):
        return positions
    return positions.take(np.linspace(0, len(positions) - 1, count).round().astype(int))


def roles(
    task: str, benchmarks: Mapping[str, Benchmark], named: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Divides the other tasks into those of the task's capability and those of other capabilities.

    Args:
        task: The claimed task.
        benchmarks: All tasks; their metadata state their capability.
        named: Tasks that the user names as of the same capability.
    """
    other_tasks = [name for name in benchmarks if name != task]
    capability = benchmarks[task].capability
    same = tuple(
        name for name in other_tasks if name in named or benchmarks[name].capability == capability
    )
    return same, tuple(name for name in other_tasks if name not in same)
