"""Says how far a run is: the stage, and the rows of its plan."""

from __future__ import annotations

from collections.abc import Callable

from broca.engine import Progress
from broca.runs.notebook import NotebookBar, in_notebook

Report = Callable[[str, Progress | None], None]
"""Receives what is going on: the stage, and how far it is where that is known."""


def silent(stage: str, progress: Progress | None) -> None:
    """A report that says nothing."""


def usual_report() -> Report:
    """The report of a caller who names none: a bar in a notebook, and silence elsewhere."""
    return NotebookBar() if in_notebook() else silent


def titled(report: Report, title: str) -> Report:
    """A report of how far a verb's plans are, under one title instead of its stages."""

    def forward(stage: str, progress: Progress | None) -> None:
        if progress is not None:
            report(title, progress)

    return forward


class Stages:
    """Reports progress with the stage of a run that it belongs to.

    Args:
        report: Receives both; in a notebook a bar shows them if None.
    """

    def __init__(self, report: Report | None = None) -> None:
        self._report = report or usual_report()
        self._name = ""
        self._done = self._rows = self._total = self._tokens = self._chunk_tokens = 0

    def enter(self, name: str) -> None:
        """Begins another stage."""
        self._name = name
        self._report(name, None)

    def at(self, done: int, rows: int, total: int) -> None:
        """A chunk of `rows` begins where `done` of `total` rows are done."""
        self._tokens = 0 if done == 0 else self._tokens + self._chunk_tokens
        self._done, self._rows, self._total, self._chunk_tokens = done, rows, total, 0
        self._report(self._name, Progress(done, total, self._tokens))

    def within(self, progress: Progress) -> None:
        """Turns the engine's progress within the chunk into progress within the plan."""
        self._chunk_tokens = progress.tokens
        share = progress.done / max(1, progress.total)
        done = self._done + int(share * self._rows)
        self._report(self._name, Progress(done, self._total, self._tokens + progress.tokens))
