"""Reports the progress of a run: the stage, the measured rows, and the time that is left."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from broca.engine import Progress

Report = Callable[[str, Progress | None], None]
"""Receives the stage, and the progress of the whole run if it is known."""

NOTE = "note: "
"""Beginning of a report that is a line for the reader instead of a stage."""

HALF_LIFE_S = 60.0
"""Seconds after which a measured speed counts half: rows of one kind differ in length."""


def silent(stage: str, progress: Progress | None) -> None:
    """A report that shows nothing."""


def usual_report() -> Report:
    """Returns the default report: tqdm's bar in a notebook or on a terminal, else `silent`."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None and not (sys.stderr and sys.stderr.isatty()):
        return silent
    from tqdm.auto import tqdm

    bar = tqdm(unit="rows", leave=False)

    def show(stage: str, progress: Progress | None) -> None:
        if not stage.startswith(NOTE):
            bar.set_description(stage, refresh=progress is None)
        if progress is not None:
            bar.total = progress.total
            bar.update(progress.done - bar.n)

    return show


class Stages:
    """Counts the rows of a run against those that it expects, and reports them with the stage.

    Args:
        report: Receives the stage and the progress; with None a notebook shows a bar.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, report: Report | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._report = report or usual_report()
        self._clock = clock
        self.name = ""
        """The current stage."""
        self._expected = 0
        self.done = 0.0
        """Rows of all plans so far."""
        self._plan = self._known = 0.0  # rows of the plan at its end, and when it began
        self._weight = 1.0  # cost of a row of the plan, in rows
        self._chunk = (0, 0)  # rows of the plan before the chunk, and in it
        self._tokens = self._chunk_tokens = 0
        self._speed = (0.0, 0.0)  # rows and seconds, older ones discounted
        self._last = clock()

    def expect(self, rows: int) -> None:
        """Adds rows that the run is going to measure at most, or about."""
        self._expected += rows

    def enter(self, name: str) -> None:
        """Begins another stage."""
        self.name, self._last = name, self._clock()
        self._report(name, None)

    def note(self, text: str) -> None:
        """Reports a line for the reader; the stage continues."""
        self._report(f"{NOTE}{text}", None)

    def within_verb(self, name: str) -> Report:
        """Begins a stage in which another verb runs, and returns the report to pass to it."""
        self.enter(name)
        before = self.done

        def follow(_: str, progress: Progress | None) -> None:
            if progress is not None:
                self._plan = before + progress.total
                self._reach(before + progress.done)

        return follow

    @contextmanager
    def reserved(self, rows: int) -> Iterator[None]:
        """Counts expected rows that are not needed within it as done, so that the end stays."""
        end = self.done + rows
        yield
        self.done = max(self.done, end)
        self._show()

    @contextmanager
    def planned(self, rows: int, *, cost: int | None = None) -> Iterator[None]:
        """Counts a plan of some rows, of which some may be known, as done at its end.

        Args:
            rows: The rows.
            cost: Counts them where gradients make them dearer.
        """
        self._known = self.done
        self._weight = 1.0 if not rows or cost is None else cost / rows
        self._plan = self.done + rows * self._weight
        self._chunk, self._last = (0, 0), self._clock()
        yield
        self.done = self._plan
        self._show()

    def at(self, done: int, rows: int, total: int) -> None:
        """Begins a chunk of `rows` after `done` of `total` rows of the plan."""
        if not self._chunk[1]:  # rows before the first chunk were known and took no time
            self.done = self._known + done * self._weight
        self._tokens, self._chunk_tokens = self._tokens + self._chunk_tokens, 0
        self._chunk = (done, rows)
        self._reach(self._known + done * self._weight)

    def within(self, progress: Progress) -> None:
        """Turns the engine's progress within the chunk into progress of the run."""
        before, rows = self._chunk
        self._chunk_tokens = progress.tokens
        share = progress.done / max(1, progress.total)
        self._reach(self._known + (before + int(share * rows)) * self._weight)

    def _reach(self, done: float) -> None:
        """Counts rows up to `done`, and reports them with the time that the others take."""
        now = self._clock()
        passed, self._last = now - self._last, now
        rows, seconds = self._speed
        weight = 0.5 ** (passed / HALF_LIFE_S)
        self._speed = rows * weight + max(0.0, done - self.done), seconds * weight + passed
        self.done = max(self.done, done)
        self._show()

    def _show(self) -> None:
        total = max(self._expected, self._plan)
        rows, seconds = self._speed
        left = seconds / rows * (total - self.done) if rows else None
        progress = Progress(int(self.done), int(total), self._tokens + self._chunk_tokens)
        self._report(self.name, replace(progress, seconds_left=left))
