"""Progress on one line of stderr."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.status import Status

if TYPE_CHECKING:
    from broca.engine import Progress


class ProgressLine:
    """Shows the stage, what is done, the rate and the time left; plain lines where asked for.

    Args:
        plain: One line a stage instead of a line that is rewritten; for logs.
    """

    def __init__(self, *, plain: bool) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._plain = plain or not self._console.is_terminal
        self._status: Status | None = None
        self._stage = ""
        self._start = 0.0
        self._shown = 0.0

    def __call__(self, stage: str, progress: Progress | None) -> None:
        """Tells what is going on."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._start, self._shown = stage, now, 0.0
            if self._plain:
                self._console.print(stage, markup=False)
        if self._plain:
            return
        if self._status is None:
            self._status = self._console.status("")
            self._status.start()
        if progress is None:
            self._status.update(stage)
        elif now - self._shown > 0.1:
            self._shown = now
            self._status.update(f"{stage}: {_figures(progress, now - self._start)}")

    def close(self) -> None:
        """Removes the line."""
        if self._status is not None:
            self._status.stop()
            self._status = None


def _figures(progress: Progress, seconds: float) -> str:
    rate = progress.done / max(seconds, 1e-9)
    left = (progress.total - progress.done) / max(rate, 1e-9)
    return (
        f"{progress.done:,} of {progress.total:,}, {rate:,.0f}/s, "
        f"{progress.tokens / max(seconds, 1e-9):,.0f} tokens/s, {left:,.0f} s left"
    )
