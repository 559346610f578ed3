"""Forecasts the total rows and the remaining time of a run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

HALF_LIFE_S = 60.0
"""Seconds after which a measured speed counts half: rows of one kind differ in length."""


@dataclass(frozen=True)
class Outlook:
    """A forecast.

    Attributes:
        done: Number of measured rows.
        total: Number of rows of the run, the measured ones included.
        seconds_left: Expected time of the remaining rows; None before any speed is known.
        guessed: Whether the speed of some remaining rows is unknown, and the slowest known speed is
            used for them.
    """

    done: int
    total: int
    seconds_left: float | None
    guessed: bool


@dataclass(frozen=True)
class Step:
    """A part of a run whose rows are known before it begins.

    Attributes:
        stage: The stage that begins it.
        rows: Maximum number of rows that it measures.
        kind: Kind of its rows; rows of the same kind take about the same time.
        verb: Whether a verb runs in it, such as a search of a study. The verb's own count of rows
            replaces the expected one, and corrects the rows of later steps of the same kind.
        returns: Whether the run returns to it after other steps; it ends with `complete`.
    """

    stage: str
    rows: int
    kind: str = "scores"
    verb: bool = False
    returns: bool = False


class Forecast:
    """Counts the rows of a run's steps and measures their speeds.

    A step that measures fewer rows than planned, such as a search that stops early, is complete
    when the next one begins, and its remaining rows are subtracted from the total. A step that
    measures more adds to the total. If some steps are verbs, an unknown speed is taken as the mean
    of the known speeds instead of the slowest.

    Args:
        steps: The steps of the run in their order; each stage begins at most one of them.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, steps: Sequence[Step], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._steps: list[Step] = []
        self._done: list[int] = []
        self._planned: list[int] = []
        """The initially expected rows of every step."""
        self._factors: dict[str, list[float]] = {}
        """By kind: measured rows of finished verbs divided by expected rows."""
        self._verb: tuple[float, bool] | None = None
        """Remaining time of the verb in the current step, and whether it is guessed."""
        self._current: int | None = None
        self._next = 0
        self.add(steps)
        self._clock = clock
        self._last = clock()
        self._speeds: dict[str, tuple[float, float]] = {}
        """Rows and seconds by kind, older ones discounted."""

    def add(self, steps: Sequence[Step], *, instead_of: str = "") -> None:
        """Adds steps that were not known before.

        Args:
            steps: They are appended, or replace a step.
            instead_of: Stage of the step to replace, which has not begun.
        """
        place, end = len(self._steps), len(self._steps)
        for number in range(self._next, len(self._steps)):
            if instead_of and self._steps[number].stage == instead_of:
                place, end = number, number + 1
        self._steps[place:end] = steps
        self._done[place:end] = [0] * len(steps)
        self._planned[place:end] = [step.rows for step in steps]

    def enter(self, stage: str) -> None:
        """Begins a stage; rows of a stage that begins no step are not counted."""
        self._last = self._clock()
        self._close()
        for place, step in enumerate(self._steps):
            if step.stage == stage and (place >= self._next or step.returns):
                for passed in range(self._next, place):
                    if not self._steps[passed].returns:
                        self._steps[passed] = replace(self._steps[passed], rows=0)
                self._current, self._next = place, max(self._next, place + 1)
                return

    def plan(self, rows: int) -> None:
        """Announces rows of a plan; the rows of the current step grow if fewer are left."""
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
        weight = 0.5 ** (passed / HALF_LIFE_S)
        measured, seconds = self._speeds.get(kind, (0.0, 0.0))
        self._speeds[kind] = measured * weight + rows, seconds * weight + passed
        self._add(rows)

    def follow(self, done: int, total: int, seconds_left: float | None, *, guessed: bool) -> None:
        """Copies the progress of the verb in the current step.

        Args:
            done: Number of its measured rows.
            total: Number of all its rows.
            seconds_left: Its remaining time; None if it is unknown.
            guessed: Whether that time is based on speeds that are not measured yet.
        """
        if self._current is None:
            return
        step = self._steps[self._current]
        self._steps[self._current] = replace(step, rows=max(total, done))
        self._verb = None if seconds_left is None else (seconds_left, guessed)
        self.measure(done - self._done[self._current])

    def complete(self, stage: str) -> None:
        """Ends a step to which the run returned; subtracts its remaining rows from the total."""
        if self._current is not None and self._steps[self._current].stage == stage:
            self._current = None
        for place, step in enumerate(self._steps[: self._next]):
            if step.stage == stage:
                self._steps[place] = replace(step, rows=self._done[place], returns=False)

    def outlook(self) -> Outlook:
        """Returns the forecast at the speeds measured so far."""
        done, total = sum(self._done), sum(step.rows for step in self._steps)
        seconds, guessed = self._verb or (0.0, False)
        remaining: Counter[str] = Counter()  # rows by kind
        for place, (step, rows) in enumerate(zip(self._steps, self._done, strict=True)):
            if self._verb is None or place != self._current:
                remaining[step.kind] += step.rows - rows
        remaining = +remaining
        pace = {kind: spent / rows for kind, (rows, spent) in self._speeds.items() if rows}
        if not remaining:
            return Outlook(done, total, seconds, guessed)
        if not pace:
            return Outlook(done, total, None, guessed=True)
        usual = max(pace.values())
        if any(step.verb for step in self._steps):
            measured = [self._speeds[kind] for kind in pace]
            usual = sum(spent for _, spent in measured) / sum(rows for rows, _ in measured)
        seconds += sum(rows * pace.get(kind, usual) for kind, rows in remaining.items())
        return Outlook(done, total, seconds, guessed or bool(set(remaining) - set(pace)))

    def _add(self, rows: int) -> None:
        if self._current is not None:
            self.plan(rows)
            self._done[self._current] += rows

    def _close(self) -> None:
        """Ends the current step with the rows that it has."""
        place, self._current, self._verb = self._current, None, None
        if place is None or self._steps[place].returns:
            return
        step = self._steps[place] = replace(self._steps[place], rows=self._done[place])
        if step.verb and self._planned[place]:
            self._learn(step.kind, step.rows / self._planned[place])

    def _learn(self, kind: str, factor: float) -> None:
        """Scales the expected rows of later verbs of a kind by the finished ones' mean factor."""
        factors = self._factors.setdefault(kind, [])
        factors.append(factor)
        mean = sum(factors) / len(factors)
        for place in range(self._next, len(self._steps)):
            if self._steps[place].verb and self._steps[place].kind == kind:
                rows = round(mean * self._planned[place])
                self._steps[place] = replace(self._steps[place], rows=rows)
