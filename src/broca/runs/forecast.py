"""How much of a run is done, and how long the rest will take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

HALF_LIFE_S = 60.0
"""Seconds after which a measured speed counts half: rows of one kind differ in length."""


@dataclass(frozen=True)
class Step:
    """A part of a run whose rows are known before it begins.

    Attributes:
        stage: The stage that begins it.
        rows: Maximum number of rows that it measures.
        kind: Rows of one kind take about the same time, such as those of one response.
    """

    stage: str
    rows: int
    kind: str = "scores"


@dataclass(frozen=True)
class Outlook:
    """What a forecast says.

    Attributes:
        done: Rows that are done.
        total: Rows of the run, the done ones included.
        seconds_left: Time that the other rows take; None before any speed is known.
        guessed: Whether the speed of some of them is not measured yet, and the slowest one known
            stands for it.
    """

    done: int
    total: int
    seconds_left: float | None
    guessed: bool


class Forecast:
    """Counts the rows of a run's steps and measures their speeds.

    A step that measures fewer rows than planned, such as a search that stops early, is complete
    when the next one begins: the rows that it left out leave the total. One that measures more
    adds to the total.

    Args:
        steps: The steps of the run in their order; each stage begins one of them at most.
        clock: Tells the time in seconds.
    """

    def __init__(
        self, steps: Sequence[Step], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._steps = list(steps)
        self._done = [0] * len(self._steps)
        self._current: int | None = None
        self._next = 0
        self._clock = clock
        self._last = clock()
        self._speeds: dict[str, tuple[float, float]] = {}
        """Rows and seconds by kind, older ones discounted."""

    def enter(self, stage: str) -> None:
        """Begins a stage; one that is no step belongs to none."""
        self._last = self._clock()
        self._close()
        for place in range(self._next, len(self._steps)):
            if self._steps[place].stage == stage:
                for passed in range(self._next, place):
                    self._steps[passed] = replace(self._steps[passed], rows=0)
                self._current, self._next = place, place + 1
                return

    def plan(self, rows: int) -> None:
        """Rows are about to be measured: a step that has fewer left gets more."""
        if self._current is not None:
            step, done = self._steps[self._current], self._done[self._current]
            self._steps[self._current] = replace(step, rows=max(step.rows, done + rows))

    def skip(self, rows: int) -> None:
        """Counts rows that were known and took no time."""
        if rows:
            self._last = self._clock()
        self._add(rows)

    def measure(self, rows: int) -> None:
        """Counts rows that were measured since the last call."""
        now = self._clock()
        passed, self._last = now - self._last, now
        if self._current is None:
            return
        kind = self._steps[self._current].kind
        kept = 0.5 ** (passed / HALF_LIFE_S)
        measured, seconds = self._speeds.get(kind, (0.0, 0.0))
        self._speeds[kind] = measured * kept + rows, seconds * kept + passed
        self._add(rows)

    def outlook(self) -> Outlook:
        """How much is done, and how long the rest takes at the speeds measured so far."""
        done, total = sum(self._done), sum(step.rows for step in self._steps)
        left: Counter[str] = Counter()  # rows by kind
        for step, rows in zip(self._steps, self._done, strict=True):
            left[step.kind] += step.rows - rows
        left = +left
        pace = {kind: spent / rows for kind, (rows, spent) in self._speeds.items() if rows}
        if not left or not pace:
            return Outlook(done, total, None if left else 0.0, guessed=bool(left))
        slowest = max(pace.values())
        seconds = sum(rows * pace.get(kind, slowest) for kind, rows in left.items())
        return Outlook(done, total, seconds, guessed=bool(set(left) - set(pace)))

    def _add(self, rows: int) -> None:
        if self._current is not None:
            self.plan(rows)
            self._done[self._current] += rows

    def _close(self) -> None:
        """The current step is complete with the rows that it has."""
        if self._current is not None:
            step = self._steps[self._current]
            self._steps[self._current] = replace(step, rows=self._done[self._current])
        self._current = None
