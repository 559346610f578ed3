"""Reports the progress of a run: the stage, and the rows of the run or of its plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from broca.engine import Progress
from broca.runs.forecast import Forecast, Step
from broca.runs.notebook import NotebookBar, in_notebook

Report = Callable[[str, Progress | None], None]
"""Receives the stage, and the progress if it is known. If the run knows the rows of its steps, the
figures refer to the whole run and include the time left; otherwise they refer to the current
plan."""

NOTE = "note: "
"""Beginning of a report that is a line for the reader instead of a stage."""


def silent(stage: str, progress: Progress | None) -> None:
    """A report that shows nothing."""


def usual_report() -> Report:
    """Returns the default report: a bar in a notebook, and `silent` elsewhere."""
    return NotebookBar() if in_notebook() else silent


class Stages:
    """Reports progress with the stage of a run that it belongs to.

    Args:
        report: Receives the stage and the progress; with None a notebook shows a bar.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, report: Report | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._report = report or usual_report()
        self._clock = clock
        self._forecast: Forecast | None = None
        self._name = ""
        self._tokens = self._chunk_tokens = 0  # before the chunk, and in it
        self.begin(0)

    def expect(self, steps: Sequence[Step], *, instead_of: str = "") -> None:
        """Adds the coming steps; from now on the figures of every report refer to the whole run.

        Args:
            steps: They follow the steps that were added before, or replace one of them.
            instead_of: The stage of the step that they replace.
        """
        if self._forecast is None:
            self._forecast = Forecast((), clock=self._clock)
        self._forecast.add(steps, instead_of=instead_of)

    @property
    def name(self) -> str:
        """The current stage."""
        return self._name

    def enter(self, name: str) -> None:
        """Begins another stage."""
        self._name = name
        if self._forecast is not None:
            self._forecast.enter(name)
        self._report(name, None)

    def enter_verb(self, name: str) -> Report:
        """Begins a stage in which a verb runs.

        Returns:
            The report to pass to the verb. Its figures refer to the whole run, or to the verb alone
            if the run's steps are unknown. It leaves out the verb's stages.
        """
        self.enter(name)

        def follow(_: str, progress: Progress | None) -> None:
            if progress is None:
                return
            if self._forecast is not None:
                self._forecast.follow(
                    progress.done, progress.total, progress.seconds_left, guessed=progress.guessed
                )
            self._report(name, self._of_run(progress))

        return follow

    def complete(self, name: str) -> None:
        """Ends a stage to whose step the run returned."""
        if self._forecast is not None:
            self._forecast.complete(name)

    def note(self, text: str) -> None:
        """Reports a line for the reader; the stage continues."""
        self._report(f"{NOTE}{text}", None)

    def begin(self, rows: int, *, cost: int | None = None) -> None:
        """Begins a plan.

        Args:
            rows: Number of its rows.
            cost: Its cost in rows if that differs, as with gradients.
        """
        self._remaining = rows if cost is None else cost  # rows that are not counted as done
        self._weight = self._remaining / max(1, rows)
        if self._forecast is not None:
            self._forecast.plan(self._remaining)
        self._measuring = False  # rows before the first chunk were known
        self._begin_part(rows)

    def at(self, done: int, rows: int, total: int) -> None:
        """Begins a chunk of `rows` after `done` of `total` rows of the plan, or of a part of it."""
        if total != self._total:
            self._begin_part(total)
        self._tokens += self._chunk_tokens
        self._done, self._rows, self._chunk_tokens = done, rows, 0
        self._reach(done)
        self._measuring = True
        self._tell(done)

    def within(self, progress: Progress) -> None:
        """Turns the engine's progress within the chunk into progress within the plan."""
        self._chunk_tokens = progress.tokens
        done = self._done + int(progress.done / max(1, progress.total) * self._rows)
        self._reach(done)
        self._tell(done)

    def end(self) -> None:
        """Ends the plan."""
        self._count(self._remaining)
        self._tokens += self._chunk_tokens
        self._chunk_tokens = 0

    def _begin_part(self, rows: int) -> None:
        self._total, self._done, self._rows, self._reached = rows, 0, 0, 0

    def _reach(self, done: int) -> None:
        reached = round(done * self._weight)
        self._count(reached - self._reached)
        self._reached = reached

    def _count(self, rows: int) -> None:
        """Passes the rows since the last report to the forecast."""
        self._remaining -= rows
        if self._forecast is not None:
            (self._forecast.measure if self._measuring else self._forecast.skip)(rows)

    def _tell(self, done: int) -> None:
        progress = Progress(done, self._total, self._tokens + self._chunk_tokens)
        self._report(self._name, self._of_run(progress))

    def _of_run(self, progress: Progress) -> Progress:
        """Returns the figures of the whole run if its steps are known."""
        if self._forecast is None:
            return progress
        outlook = self._forecast.outlook()
        return replace(
            progress,
            done=outlook.done,
            total=outlook.total,
            seconds_left=outlook.seconds_left,
            guessed=outlook.guessed,
        )
