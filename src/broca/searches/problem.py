"""Problems of searches, the rankings that solve them, and the loop that runs every search."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from broca.components import Component
from broca.errors import BadInput, TooFewRows
from broca.measurement import Execute, Floats, Ints, Measurement, Plan
from broca.results.localization import AdditivityInfo, AnswerInfo, RankedComponent

T = TypeVar("T")
Search = Generator[Plan, Measurement, T]
"""A search, or a part of one: it yields plans, is sent their measurements, and returns a result.
The result of a localization method is a `Ranking`."""

MANY = 128
"""Number of components up to which all are searched, whatever the rows: on small models slopes miss
components that the task needs (experiments/LOG.md)."""

_LEAST = 0.01
"""Share of the largest effect below which an effect counts as none."""
_ROUNDING = 1e-9
"""Effects below this are rounding errors."""


def require_selection(k: int, components: int, kinds: str) -> None:
    """Refuses to select more components than a model has of some kinds.

    Raises:
        BadInput: `k` is larger than their number.
    """
    if k > components:
        raise BadInput(
            f"`k` {k} is more than the {components} {kinds} of the model: give {components} or less"
        )


@dataclass(frozen=True)
class OtherTask:
    """A task that the selection should not affect.

    Attributes:
        name: Name of the task.
        items: Positions of its `locate` items in the bank.
        confirm: Positions of its `confirm` items.
    """

    name: str
    items: Ints
    confirm: Ints


@dataclass(frozen=True)
class Problem:
    """The problem of a search.

    Attributes:
        components: Number of components.
        items: Positions of the task's `locate` items in the bank.
        k: Maximum number of components to select.
        rows: Maximum number of rows, or None for the method's own budget.
        seed: Seed of all random draws.
        confirm: Positions of the task's `confirm` items, which no screening uses.
        others: The tasks that the selection should not affect.
        texts: Positions of sentences of neutral text, which it should not affect either; their
            margin is their mean log-probability, in nats per token.
        continuous: Whether every `locate` item has a margin, and the method chooses the response.
        differentiable: Whether a row can return its gradient.
        scale: Gate of an ablated component.
        prefix_tokens: Number of tokens with which the prompts of all `locate` items begin, which
            the rows of a mask can share; 0 without a common prefix.
        item_tokens: Mean number of an item's other tokens.
    """

    components: int
    items: Ints
    k: int
    rows: int | None
    seed: int
    confirm: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    others: tuple[OtherTask, ...] = ()
    texts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    continuous: bool = False
    differentiable: bool = False
    scale: float = 0.0
    prefix_tokens: float = 0.0
    item_tokens: float = 1.0

    def budget(self, usual: int, *, fewest: int) -> int:
        """Returns the maximum number of rows: that of the problem, or else the method's `usual`.

        Raises:
            TooFewRows: It is below `fewest`.
        """
        rows = usual if self.rows is None else self.rows
        if rows < fewest:
            raise TooFewRows(rows, fewest)
        return rows

    def slopes(self, measurement: Measurement) -> NDArray[np.float32]:
        """Returns the gradients of rows, `(rows, components)`, in units of an ablation.

        Minus them are the changes by ablating each component, to first order.
        """
        return (1 - self.scale) * measurement.slopes()

    def affordable(self, cost: int, *, fewest: int = 1) -> Ints:
        """Returns the items that the budget allows at `cost` rows each; see `drawn`.

        Raises:
            TooFewRows: They are fewer than `fewest` and fewer than the task has.
        """
        count = len(self.items)
        needed = cost * min(fewest, count)
        return self.drawn(self.budget(cost * count, fewest=needed) // cost)

    def drawn(self, count: int) -> Ints:
        """Returns at most `count` items, spread over all: the first are of a group's first task."""
        rng = np.random.default_rng([self.seed, 0x17E5])
        parts = np.array_split(self.items, min(count, len(self.items)))
        return np.array([rng.choice(part) for part in parts], dtype=np.intp)


@dataclass(frozen=True)
class Ranking:
    """Components ordered by estimated effect.

    Attributes:
        effects: Effect of ablating each component on the response, `(components,)`; negative if the
            task needs it, exactly 0 without evidence.
        order: Columns, the most harmful ablation first.
        selected: The selected columns, at most k, in the order of `order`.
        reason: Why nothing was selected; empty otherwise.
        options: The settings that the search used, for the record.
        intervals: 90 % interval of every effect, `(components, 2)`; NaN for none.
        frequency: Share of resamples of the rows, or of draws of their posterior, that select each
            component, `(components,)`.
        others: Mean effect on the other tasks, `(components,)`.
        universal: Columns of the components that the other tasks need too.
        notes: Notes for the reader.
        groups: Groups of columns that the method distinguishes, by name.
        p_values: One-sided p-values of no harm, `(components,)`.
        q_values: p-values corrected for the number of components (Benjamini and Hochberg).
        additivity: How well the effects add up; None without random masks.
        answer: The answer of the search, one of three; None if the method gives none.
    """

    effects: Floats
    order: tuple[int, ...]
    selected: tuple[int, ...]
    reason: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    intervals: Floats | None = None
    frequency: Floats | None = None
    others: Floats | None = None
    universal: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    p_values: Floats | None = None
    q_values: Floats | None = None
    additivity: AdditivityInfo | None = None
    answer: AnswerInfo | None = None

    @classmethod
    def of(
        cls,
        effects: Floats,
        selected: tuple[int, ...],
        reason: str,
        options: dict[str, Any],
        **statistics: Any,
    ) -> Ranking:
        """Ranks the selected components first and the others by their effects.

        Args:
            effects: Effect of every component, `(components,)`.
            selected: The selected columns.
            reason: Why nothing was selected, if nothing was.
            options: The settings that the search used.
            statistics: Other fields of the ranking.
        """
        by_effect = np.argsort(effects, kind="stable").tolist()
        order = (*selected, *(column for column in by_effect if column not in selected))
        return cls(effects, order, selected, "" if selected else reason, options, **statistics)

    @classmethod
    def of_samples(
        cls, samples: ArrayLike, k: int, *, reason: str, options: dict[str, Any]
    ) -> Ranking:
        """Ranks by mean effects and selects those that are significantly negative.

        Args:
            samples: Estimates of every effect, `(samples, components)`.
            k: Maximum number of components to select.
            reason: Why nothing was selected, if nothing was.
            options: The settings that the search used.
        """
        effects, intervals = mean_with_interval(samples)
        selected = harmful(effects, intervals, k)
        return cls.of(effects, selected, reason, options, intervals=intervals)

    def lines(self, components: Sequence[Component]) -> tuple[RankedComponent, ...]:
        """Returns the components in order, each with its statistics, as results list them."""
        lines = []
        for column in self.order:
            part, effect = components[column], float(self.effects[column])
            low, high = (nan, nan) if self.intervals is None else map(float, self.intervals[column])
            # extended to include the estimate, which may be shrunken
            ci = None if isnan(low) else (min(low, effect), max(high, effect))
            known = (self.frequency, self.p_values, self.q_values)
            statistics = [None if values is None else float(values[column]) for values in known]
            lines.append(
                RankedComponent(part.name, part.layer, part.index, effect, ci, *statistics)
            )
        return tuple(lines)


class Strategy(Protocol):
    """A method with its options; it has no state and solves any number of problems.

    Its constructor takes the options by keyword and refuses invalid values.
    """

    def most_rows(self, problem: Problem) -> int:
        """Returns the largest number of rows that the search may measure.

        It measures and draws nothing.

        Raises:
            BadInput: The row budget is too small, or the options do not fit the problem.
        """

    def generate(self, problem: Problem) -> Search[Ranking]:
        """Runs the search: yields plans, is sent measurements, returns a ranking."""


def answered(search: Search[T], answer: Callable[[Plan], Search[Measurement]]) -> Search[T]:
    """Runs a search within another one, which measures each of its plans as `answer` does."""
    measurement: Any = None
    while True:
        try:
            plan = search.send(measurement)
        except StopIteration as end:
            return cast(T, end.value)
        measurement = yield from answer(plan)


def run(search: Search[T], execute: Execute) -> T:
    """Runs a search to its end: measures the plans that it yields, and returns its result."""
    measurement: Any = None
    while True:
        try:
            plan = search.send(measurement)
        except StopIteration as end:
            return cast(T, end.value)
        measurement = execute(plan)


def mean_with_interval(samples: ArrayLike) -> tuple[Floats, Floats]:
    """Returns means and their 90 % intervals by Student's t.

    Args:
        samples: Estimates of every effect, `(samples, components)`.

    Returns:
        Means `(components,)` and intervals `(components, 2)`; NaN for a single sample.
    """
    from scipy.stats import t

    values = np.asarray(samples, dtype=np.float64)
    count, mean = len(values), values.mean(axis=0)
    if count < 2:
        return mean, np.full((len(mean), 2), np.nan)
    half = t.ppf(0.95, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return mean, np.stack([mean - half, mean + half], axis=1)


def harmful(effects: Floats, intervals: Floats, k: int) -> tuple[int, ...]:
    """Selects at most k components whose effect is significantly negative, the largest first.

    Effects below a hundredth of the largest effect are not selected either, because many exact
    samples make any effect significant. An effect without an interval is taken as exact.
    """
    least = max(_ROUNDING, _LEAST * float(np.abs(effects).max()))
    upper = np.where(np.isnan(intervals[:, 1]), effects, intervals[:, 1])
    order = np.argsort(effects, kind="stable")
    return tuple(order[(effects[order] <= -least) & (upper[order] < 0)][:k].tolist())


def most_negative(effects: Floats, k: int) -> tuple[int, ...]:
    """Selects the at most k components of the most negative effects."""
    order = np.argsort(effects, kind="stable")[:k]
    return tuple(order[effects[order] < 0].tolist())
