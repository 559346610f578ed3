"""Problems, rankings, and the three verbs of every search: ask, tell, result."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.measurement import Execute, Measurement, Plan
from broca.recovery import Additivity
from broca.results.localization import AnswerInfo


def _no_items() -> NDArray[np.intp]:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class OtherTask:
    """A task that the selection should leave alone.

    Attributes:
        name: Its name.
        items: Positions of its `locate` items in the bank.
        confirm: Positions of its `confirm` items.
    """

    name: str
    items: NDArray[np.intp]
    confirm: NDArray[np.intp]


@dataclass(frozen=True)
class Problem:
    """What a search has to solve.

    Attributes:
        components: Number of components.
        items: Positions of the task's `locate` items in the bank.
        k: Maximum number of components to select.
        rows: Maximum number of rows to spend, or None for what the method needs by itself.
        seed: Seed of everything random.
        confirm: Positions of the task's `confirm` items, which no screening saw.
        others: The tasks that the selection should leave alone.
        continuous: Whether every `locate` item has a margin, and so a probability.
        differentiable: Whether a row can return its gradient.
        prefix_tokens: Tokens that the prompts of all `locate` items begin with, which one mask's
            rows read once; 0 where nothing is shared.
        item_tokens: Mean tokens of an item beyond those.
    """

    components: int
    items: NDArray[np.intp]
    k: int
    rows: int | None
    seed: int
    confirm: NDArray[np.intp] = field(default_factory=_no_items)
    others: tuple[OtherTask, ...] = ()
    continuous: bool = False
    differentiable: bool = False
    prefix_tokens: float = 0.0
    item_tokens: float = 1.0

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> Problem:
        """The problem of a record that has its fields, other tasks as mappings."""
        others = tuple(OtherTask(**other) for other in record.get("others", ()))
        return cls(**{**record, "others": others})

    def items_at(self, cost: int, *, method: str, fewest: int) -> NDArray[np.intp]:
        """The items that the row budget allows at `cost` rows each.

        Raises:
            BadInput: They are fewer than `fewest`, and than the task has.
        """
        if self.rows is None:
            return self.items
        needed = min(fewest, len(self.items))
        count = min(len(self.items), self.rows // cost)
        if count < needed:
            raise BadInput(
                f"`rows` {self.rows} is too few for {method}: it spends {cost} rows on each of at "
                f"least {needed} items; set `rows` to {cost * needed} or more, or use another "
                "method"
            )
        return self.items[:count]

    def items_within(self, masks: int, *, method: str) -> NDArray[np.intp]:
        """The items that `masks` masks can each be measured on within the row budget.

        Raises:
            BadInput: Not even one item fits.
        """
        if self.rows is None:
            return self.items
        count = min(len(self.items), self.rows // masks)
        if count < 1:
            raise BadInput(
                f"`rows` {self.rows} is too few for {method}: it measures {masks} masks, on at "
                f"least one item each; set `rows` to {masks} or more, or use another method"
            )
        return self.items[:count]


@dataclass(frozen=True)
class Ranking:
    """Components ordered by estimated effect.

    Attributes:
        effects: Effect of ablating each component on the response, `(components,)`; negative where
            the task needs it, exactly 0 where there is no evidence.
        order: Columns, most harmful to lose first.
        selected: The chosen columns, at most k, in the order of `order`.
        reason: Why nothing was selected; empty where something was.
        options: The settings that the search used, for the record.
        intervals: 90 % interval of every effect, `(components, 2)`; NaN where there is none.
        frequency: How often each component was selected over resamples, `(components,)`.
        others: Effect on the other tasks, their mean, `(components,)`.
        universal: Columns of the components that the other tasks need as well.
        notes: What the reader should know, in words.
        groups: Columns that the method tells apart, by what it calls them.
        p_values: Of no harm, one-sided, `(components,)`.
        q_values: The same, corrected for the number of components (Benjamini and Hochberg).
        additivity: How well the effects add up; None without random masks.
        answer: Which of three answers the search gives; None where the method cannot tell them
            apart.
    """

    effects: NDArray[np.float64]
    order: tuple[int, ...]
    selected: tuple[int, ...]
    reason: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    intervals: NDArray[np.float64] | None = None
    frequency: NDArray[np.float64] | None = None
    others: NDArray[np.float64] | None = None
    universal: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    p_values: NDArray[np.float64] | None = None
    q_values: NDArray[np.float64] | None = None
    additivity: Additivity | None = None
    answer: AnswerInfo | None = None

    @property
    def details(self) -> dict[str, Any]:
        """What is known of each component besides its effect."""
        return {
            "intervals": self.intervals,
            "frequency": self.frequency,
            "p_values": self.p_values,
            "q_values": self.q_values,
        }


Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Search(Protocol[Result_co]):
    """Asks for plans until it has its result, which is a `Ranking` for localization methods."""

    def ask(self) -> Plan | None:
        """The next rows to measure, or None when the search is over."""

    def tell(self, measurement: Measurement) -> None:
        """Takes the responses to the plan that was asked last."""

    def result(self) -> Result_co:
        """The result; valid once `ask` has returned None."""


SearchGenerator = Generator[Plan, Measurement, Ranking]
"""A search from start to end: it yields plans, is sent measurements, and returns a ranking."""


class Strategy(Protocol):
    """A method with its options set: it holds nothing of a problem, and solves any number of them.

    Its constructor takes the options by keyword and refuses values that make no sense.
    """

    def require(self, problem: Problem) -> object:
        """Refuses a problem that it cannot solve; nothing is measured or drawn.

        Raises:
            BadInput: The row budget is too small, or the options do not fit the problem.
        """

    def generate(self, problem: Problem) -> SearchGenerator:
        """The search from start to end: yields plans, is sent measurements, returns a ranking."""


class GeneratorSearch(Generic[Result]):
    """Wraps a generator that yields plans and returns a result, such as a ranking.

    Args:
        rounds: Yields plans, is sent their measurements, returns the result. It starts at the first
            `ask`.
    """

    def __init__(self, rounds: Generator[Plan, Measurement, Result]) -> None:
        self._rounds = rounds
        self._result: list[Result] = []
        self._plan: Plan | None = None

    def ask(self) -> Plan | None:
        """The plan that the generator waits for, or None when it has returned."""
        if self._plan is None and not self._result:
            self._advance(None)
        return self._plan

    def tell(self, measurement: Measurement) -> None:
        """Sends the measurement to the generator."""
        self._advance(measurement)

    def result(self) -> Result:
        """What the generator returned."""
        assert self._result, "ask and tell first"
        return self._result[0]

    def _advance(self, measurement: Measurement | None) -> None:
        try:
            self._plan = (
                next(self._rounds) if measurement is None else self._rounds.send(measurement)
            )
        except StopIteration as end:
            self._plan = None
            self._result.append(end.value)


def run(search: Search[Result_co], execute: Execute) -> Result_co:
    """Runs a search to its end."""
    while (plan := search.ask()) is not None:
        search.tell(execute(plan))
    return search.result()


def most_negative(
    effects: NDArray[np.float64], k: int, *, reason: str
) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Orders components by effect and selects at most k that hurt.

    A component whose effect is zero or positive is never selected: it would be no evidence.

    Returns:
        The order, the selection, and `reason` if the selection is empty (else "").
    """
    order = tuple(int(column) for column in np.argsort(effects, kind="stable"))
    selected = tuple(column for column in order[:k] if effects[column] < 0)
    return order, selected, "" if selected else reason
