"""`--log`: sends the command's settings, progress and result to a tracker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from broca.options import Options, flat
from broca.options.base import shown_as

if TYPE_CHECKING:
    from broca.engine import Progress
    from broca.integrations.tracking import Log
    from broca.results.base import Result

Report = Callable[[str, "Progress | None"], None]


@shown_as("Log", "Where the command is logged.", 12)
@dataclass(frozen=True, kw_only=True)
class LogOptions(Options):
    """Where the command is logged."""

    log: str | None = None
    """Log settings, progress, scores and the result: {trackers}."""

    log_project: str = "broca"
    """The tracker's project or experiment."""


class Logged:
    """A command that may be logged.

    Attributes:
        report: Receives the current stage and the progress.
    """

    def __init__(self, report: Report, log: Log | None = None) -> None:
        self.report: Report = report if log is None else log
        self._log = log

    def result(self, result: Result, files: Sequence[Path]) -> None:
        """Logs the result and its files, if anything is logged."""
        if self._log is not None:
            self._log.result(result, files)


@contextmanager
def logged(options: LogOptions, verb: str, settings: Options, progress: Report) -> Iterator[Logged]:
    """Logs a command within the context, if a tracker is named.

    Args:
        options: Name and project of the tracker, if any.
        verb: The command's first word.
        settings: The options of the verb.
        progress: Receives progress, with and without a tracker.

    Raises:
        BadInput: The tracker is unknown, or not installed.
    """
    if options.log is None:
        yield Logged(progress)
        return
    from broca.integrations.tracking import Log

    plain = {"verb": verb, **flat(settings.decisive())}
    with Log(options.log, project=options.log_project, settings=plain, also=progress) as log:
        yield Logged(progress, log)
