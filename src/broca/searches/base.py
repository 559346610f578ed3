"""Problems, rankings, and the three verbs of every search: ask, tell, result."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.measurement import Execute, Measurement, Plan
from broca.recovery import Additivity
from broca.results.localization import AnswerInfo


@dataclass(frozen=True)
class OtherTask:
    """A task that the selection should not affect.

    Attributes:
        name: Name of the task.
        items: Positions of its `locate` items in the bank.
        confirm: Positions of its `confirm` items.
    """

    name: str
    items: NDArray[np.intp]
    confirm: NDArray[np.intp]


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
        continuous: Whether every `locate` item has a margin and therefore a probability.
        differentiable: Whether a row can return its gradient.
        prefix_tokens: Number of tokens with which the prompts of all `locate` items begin, which
            the rows of a mask can share; 0 without a common prefix.
        item_tokens: Mean number of an item's other tokens.
    """

    components: int
    items: NDArray[np.intp]
    k: int
    rows: int | None
    seed: int
    confirm: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    others: tuple[OtherTask, ...] = ()
    continuous: bool = False
    differentiable: bool = False
    prefix_tokens: float = 0.0
    item_tokens: float = 1.0

    def items_at(self, cost: int, *, method: str, fewest: int) -> NDArray[np.intp]:
        """Returns the items that the row budget allows at `cost` rows each.

        Raises:
            BadInput: They are fewer than `fewest` and fewer than the task has.
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
        """Returns the items on which each of `masks` masks can be measured within the row budget.

        Raises:
            BadInput: The budget does not allow one item.
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
        effects: Effect of ablating each component on the response, `(components,)`; negative if the
            task needs it, exactly 0 without evidence.
        order: Columns, the most harmful ablation first.
        selected: The selected columns, at most k, in the order of `order`.
        reason: Why nothing was selected; empty otherwise.
        options: The settings that the search used, for the record.
        intervals: 90 % interval of every effect, `(components, 2)`; NaN for none.
        frequency: Share of resamples that select each component, `(components,)`.
        others: Mean effect on the other tasks, `(components,)`.
        universal: Columns of the components that the other tasks need too.
        notes: Notes for the reader.
        groups: Groups of columns that the method distinguishes, by name.
        p_values: One-sided p-values of no harm, `(components,)`.
        q_values: p-values corrected for the number of components (Benjamini and Hochberg).
        additivity: How well the effects add up; None without random masks.
        answer: The answer of the search, one of three; None if the method gives none.
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
        """Statistics of each component besides its effect, by name."""
        return {
            "intervals": self.intervals,
            "frequency": self.frequency,
            "p_values": self.p_values,
            "q_values": self.q_values,
        }


ResultT = TypeVar("ResultT")
Result_co = TypeVar("Result_co", covariant=True)


class Search(Protocol[Result_co]):
    """Yields plans by `ask` until it has its result, a `Ranking` for localization methods."""

    def ask(self) -> Plan | None:
        """Returns the next rows to measure, or None when the search is over."""

    def tell(self, measurement: Measurement) -> None:
        """Receives the responses to the last plan."""

    def result(self) -> Result_co:
        """Returns the result; valid once `ask` has returned None."""


SearchGenerator = Generator[Plan, Measurement, Ranking]
"""A search from start to end: it yields plans, is sent measurements, and returns a ranking."""


class Strategy(Protocol):
    """A method with its options; it has no state and solves any number of problems.

    Its constructor takes the options by keyword and refuses invalid values.
    """

    def require(self, problem: Problem) -> object:
        """Refuses a problem that it cannot solve, without measuring or drawing anything.

        Raises:
            BadInput: The row budget is too small, or the options do not fit the problem.
        """

    def generate(self, problem: Problem) -> SearchGenerator:
        """Runs the search: yields plans, is sent measurements, returns a ranking."""


class GeneratorSearch(Generic[ResultT]):
    """Wraps a generator that yields plans and returns a result, such as a ranking.

    Args:
        rounds: Yields plans, is sent their measurements, returns the result. It starts at the first
            `ask`.
    """

    def __init__(self, rounds: Generator[Plan, Measurement, ResultT]) -> None:
        self._rounds = rounds
        self._result: list[ResultT] = []
        self._plan: Plan | None = None

    def ask(self) -> Plan | None:
        """Returns the plan that the generator waits for, or None when it has returned."""
        if self._plan is None and not self._result:
            self._advance(None)
        return self._plan

    def tell(self, measurement: Measurement) -> None:
        """Sends the measurement to the generator."""
        self._advance(measurement)

    def result(self) -> ResultT:
        """Returns the result of the generator."""
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
    """Orders components by effect and selects at most k harmful ones.

    A component whose effect is zero or positive is never selected.

    Returns:
        The order, the selection, and `reason` if the selection is empty (else "").
    """
    order = tuple(int(column) for column in np.argsort(effects, kind="stable"))
    selected = tuple(column for column in order[:k] if effects[column] < 0)
    return order, selected, "" if selected else reason


def members_first(
    members: NDArray[np.intp],
    contrast: NDArray[np.float64],
    others: NDArray[np.float64],
    needed: NDArray[np.bool_],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Orders components by what the task loses beyond the others, the members of a set first.

    Args:
        members: Columns of the set.
        contrast: Effect of ablating each component on the task beyond the others, `(components,)`.
        others: Mean effect on the other tasks, `(components,)`.
        needed: Whether the other tasks need each component, `(components,)`.

    Returns:
        The order, the members, and the components that the others need and the set does not have.
    """
    by_contrast, by_others = np.argsort(contrast, kind="stable"), np.argsort(others, kind="stable")
    first = members[np.argsort(contrast[members], kind="stable")]
    later = by_contrast[~np.isin(by_contrast, members)]
    universal = by_others[needed[by_others] & ~np.isin(by_others, members)]
    return (*first.tolist(), *later.tolist()), tuple(first.tolist()), tuple(universal.tolist())
