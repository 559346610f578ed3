"""What every search is: it asks for plans, is told their responses, and has a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from broca.errors import BadInput
from broca.plan import Measurement, Plan


@dataclass(frozen=True)
class Problem:
    """What a search has to solve.

    Attributes:
        components: Number of components.
        items: Positions of the task's `locate` items in the bank.
        k: Most components to select.
        rows: Most rows to spend, or None for what the method needs by itself.
        seed: Seed of everything random.
    """

    components: int
    items: NDArray[np.intp]
    k: int
    rows: int | None
    seed: int

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
                f"--rows {self.rows} is too few for {method}: it measures {masks} masks, on at "
                f"least one item each; use --rows {masks} or more, or another method"
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
    """

    effects: NDArray[np.float64]
    order: tuple[int, ...]
    selected: tuple[int, ...]
    reason: str = ""
    options: dict[str, Any] = field(default_factory=dict)


class Search(Protocol):
    """A localization method."""

    def ask(self) -> Plan | None:
        """The next rows to measure, or None when the search is over."""

    def tell(self, measurement: Measurement) -> None:
        """Takes the responses to the plan that was asked last."""

    def result(self) -> Ranking:
        """The ranking; valid once `ask` has returned None."""


def run(search: Search, execute: Callable[[Plan], Measurement]) -> Ranking:
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
