"""Shows progress on stderr: one bar of the whole run above its steps, or plain lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from broca.cli.wording import duration, printable
from broca.options import Options
from broca.options.base import HIDDEN, shown_as

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from broca.engine import Progress

FIRST = "loading libraries"
"""The first line, which is shown before torch is imported."""

NOTE = "note: "
"""Beginning of a report that is a line for the reader instead of a step."""

STEPS = 8
"""Maximum number of steps below the bar."""

BAR = 30
"""Maximum width of the bar in columns."""

EVERY_S = 60.0
"""Minimum seconds between two plain lines of a step."""


@shown_as("Print", "How results and progress are printed.", 13)
class PrintOptions(Options):
    """How results and progress are printed."""

    json: bool = False
    """Print the result as JSON on stdout, as in its file."""

    plain: bool = False
    """Print progress as plain lines, the default where stderr is not a terminal."""

    quiet: bool = False
    """Print no progress, only the result, warnings and errors."""


class ProgressPrint(PrintOptions):
    """Of a command without JSON."""

    json: Annotated[bool, HIDDEN] = False


@dataclass
class _Step:
    """A step with its times and its progress."""

    name: str
    began: float
    ended: float | None = None
    progress: Progress | None = None
    heard: float = 0.0
    """Time of the last report."""


class ProgressDisplay:
    """Shows the progress of a verb, as its `on_progress`.

    On a terminal, a bar counts the rows of the whole run and shows the time left, if the verb knows
    them; the steps are listed below it. Elsewhere every step is a line, and a long step adds a line
    with its progress once a minute.

    Args:
        options: Whether progress is shown, and whether as plain lines.
        console: Console on which it is shown; stderr by default.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        options: PrintOptions,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.console import Console

        self._console = console or Console(stderr=True, highlight=False)
        self._quiet = options.quiet
        self._plain = options.plain or not self._console.is_terminal
        self._clock = clock
        self._steps: list[_Step] = []
        self._printed = clock()
        self._live: Live | None = None
        self(FIRST, None)

    def __call__(self, stage: str, progress: Progress | None) -> None:
        """Shows the current stage and its progress."""
        if self._quiet:
            return
        stage, now = printable(stage), self._clock()
        if stage.startswith(NOTE):
            self._line(stage)
            return
        if not self._steps or stage != self._steps[-1].name:
            if self._steps:
                self._steps[-1].ended = now
            self._steps.append(_Step(stage, now))
            if self._plain:
                self._line(stage)
        step = self._steps[-1]
        if progress is not None:
            step.progress, step.heard = progress, now
        if not self._plain:
            self._show()
        elif progress is not None and now - self._printed >= EVERY_S:
            self._line(f"{stage}: {_figures(progress, 0.0)}")

    def close(self) -> None:
        """Removes the bar and its steps."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _line(self, text: str) -> None:
        """Prints a permanent line without wrapping it."""
        self._printed = self._clock()
        wraps = not self._console.is_terminal  # else between words
        self._console.print(text, markup=False, highlight=False, soft_wrap=wraps)

    def _show(self) -> None:
        if self._live is None:
            from rich.live import Live

            self._live = Live(
                get_renderable=self._picture, console=self._console,
                refresh_per_second=5, transient=True, vertical_overflow="crop",
            )  # fmt: skip
            self._live.start()

    def _picture(self) -> Text:
        """Draws the bar and the steps; no line is wider than the terminal."""
        from rich.text import Text

        now, width = self._clock(), max(20, self._console.width - 1)
        unicode = (self._console.encoding or "").lower().startswith("utf")
        lines = []
        latest = next((s for s in reversed(self._steps) if s.progress is not None), None)
        if latest is not None and latest.progress is not None:
            figures = _figures(latest.progress, now - latest.heard)
            share = latest.progress.done / max(1, latest.progress.total)
            lines.append(_bar(share, figures, width=width, unicode=unicode))
        for step in self._steps[-STEPS:]:
            ended = step.ended is not None
            mark = ("✓" if ended else "▸") if unicode else ("*" if ended else ">")
            spent = (now if step.ended is None else step.ended) - step.began
            text = f"{mark} {step.name}  {duration(spent)}"
            lines.append(Text(text, style="dim" if ended else ""))
        for line in lines:
            line.truncate(width, overflow="ellipsis" if unicode else "crop")
        picture = Text("\n", no_wrap=True).join(lines)
        picture.no_wrap = True
        return picture


def _bar(share: float, figures: str, *, width: int, unicode: bool) -> Text:
    """Draws a bar followed by figures."""
    from rich.text import Text

    columns = max(0, min(BAR, width - len(figures) - 8))
    full = int(min(1.0, share) * columns)
    done, left = ("━", "╌") if unicode else ("#", "-")
    return Text.assemble(
        (done * full, "green"),
        (left * (columns - full), "dim"),
        f" {int(100 * min(1.0, share)):3d} %  {figures}",
    )


def _figures(progress: Progress, passed: float) -> str:
    """Formats the rows and the time left, `passed` seconds after the report."""
    text = f"{progress.done:,} of {progress.total:,} rows"
    if progress.seconds_left is None:
        return text
    remaining = duration(max(0.0, progress.seconds_left - passed))
    return f"{text}  {remaining} left"
