"""Shows the progress of a run below the notebook cell that started it."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

from broca.engine import Progress

PAUSE_S = 0.2
"""Minimum seconds between two updates of the bar."""


def in_notebook() -> bool:
    """Whether the caller runs in a notebook cell of an IPython kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookBar:
    """Reports progress as an HTML bar that is updated in place."""

    def __init__(self) -> None:
        self._display: Any = None
        self._changed_at = 0.0
        self._stage = ""

    def __call__(self, stage: str, progress: Progress | None) -> None:
        """Shows the stage of a run, and its progress if that is known.

        Args:
            stage: The current stage.
            progress: Measured rows and tokens.
        """
        ended = progress is not None and progress.done >= progress.total
        now = time.monotonic()
        if stage == self._stage and not ended and now < self._changed_at + PAUSE_S:
            return
        self._stage, self._changed_at = stage, now
        self._show(bar(stage, progress))

    def _show(self, html: str) -> None:
        from IPython.display import HTML, display  # optional

        if self._display is None:
            self._display = display(HTML(html), display_id=True)
        else:
            self._display.update(HTML(html))


def bar(stage: str, progress: Progress | None) -> str:
    """Returns a stage and its progress bar, as HTML without a script."""
    label = f"<span>{escape(stage)}</span>"
    if progress is None or not progress.total:
        return f"<div>{label}</div>"
    return (
        f'<div><progress value="{progress.done}" max="{progress.total}"></progress> {label}, '
        f"{progress.done:,} of {progress.total:,} rows</div>"
    )
