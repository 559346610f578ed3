"""`--log`: sends the command's settings, progress and result to a tracker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.commands import LogOptions

if TYPE_CHECKING:
    from broca.engine import Progress
    from broca.integrations.tracking import Log
    from broca.results.base import Result

Report = Callable[[str, "Progress | None"], None]


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
def logged(
    options: LogOptions, verb: str, settings: Mapping[str, Any], progress: Report
) -> Iterator[Logged]:
    """Logs a command within the context, if a tracker is named.

    Args:
        options: Name and project of the tracker, if any.
        verb: The command's first word.
        settings: The settings of the command.
        progress: Receives progress, with and without a tracker.

    Raises:
        BadInput: The tracker is unknown, or not installed.
    """
    if options.log is None:
        yield Logged(progress)
        return
    from broca.integrations.tracking import Log

    settings = {"verb": verb, **settings}
    with Log(options.log, project=options.log_project, settings=settings, also=progress) as log:
        yield Logged(progress, log)
