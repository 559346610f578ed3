"""Says how far a run is: the stage, and the rows of the run or of its plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from broca.engine import Progress
from broca.runs.forecast import Forecast, Step
from broca.runs.notebook import NotebookBar, in_notebook

Report = Callable[[str, Progress | None], None]
"""Receives what is going on: the stage, and how far the run is where that is known. Where the run
knows the rows of its steps, the figures are those of the whole run, with the time left; otherwise
those of the plan that is being measured."""

NOTE = "note: "
"""What a report begins with that is not a stage, but a line for the reader."""


def silent(stage: str, progress: Progress | None) -> None:
    """A report that says nothing."""


def usual_report() -> Report:
    """The report of a caller who names none: a bar in a notebook, and silence elsewhere."""
    return NotebookBar() if in_notebook() else silent


class Stages:
    """Reports progress with the stage of a run that it belongs to.

    Args:
        report: Receives both; in a notebook a bar shows them if None.
        clock: Tells the time in seconds.
    """

    def __init__(
        self, report: Report | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._report = report or usual_report()
        self._clock = clock
        self._forecast: Forecast | None = None
        self._name = ""
        self._tokens = self._chunk_tokens = 0  # of the run before the chunk, and of the chunk
        self.begin(0)

    def expect(self, steps: Sequence[Step], *, instead_of: str = "") -> None:
        """Says which steps are to come: from now on every report tells of the whole run.

        Args:
            steps: They follow those that were expected before, or replace one of them.
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
            The report to give to the verb. It tells how far the whole run is, and the verb alone
            where the run's steps are unknown; the verb's stages are left out.
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
        """Ends a stage whose step the run came back to."""
        if self._forecast is not None:
            self._forecast.complete(name)

    def note(self, text: str) -> None:
        """Tells the reader something; the stage goes on."""
        self._report(f"{NOTE}{text}", None)

    def begin(self, rows: int, *, cost: int | None = None) -> None:
        """A plan begins.

        Args:
            rows: Its rows.
            cost: What it takes of a row budget, where that is another number.
        """
        self._left = rows if cost is None else cost  # of the plan, not counted as done yet
        self._weight = self._left / max(1, rows)
        if self._forecast is not None:
            self._forecast.plan(self._left)
        self._measuring = False  # what is done before the first chunk was known
        self._begin_part(rows)

    def at(self, done: int, rows: int, total: int) -> None:
        """A chunk of `rows` begins where `done` of `total` rows are done: of the plan or a part."""
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
        """The plan is measured."""
        self._count(self._left)
        self._tokens += self._chunk_tokens
        self._chunk_tokens = 0

    def _begin_part(self, rows: int) -> None:
        self._total, self._done, self._rows, self._reached = rows, 0, 0, 0

    def _reach(self, done: int) -> None:
        reached = round(done * self._weight)
        self._count(reached - self._reached)
        self._reached = reached

    def _count(self, rows: int) -> None:
        """Hands what was done since the last report to the forecast."""
        self._left -= rows
        if self._forecast is not None:
            (self._forecast.measure if self._measuring else self._forecast.skip)(rows)

    def _tell(self, done: int) -> None:
        progress = Progress(done, self._total, self._tokens + self._chunk_tokens)
        self._report(self._name, self._of_run(progress))

    def _of_run(self, progress: Progress) -> Progress:
        """The figures of the whole run, where its steps are known."""
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
