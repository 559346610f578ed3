"""Records `make demo` and makes the README's pictures and figures from it.

    python docs/demo.py            # run the demo in a terminal, then write all of them
    python docs/demo.py --draw     # write them from broca-out as it is
    python docs/demo.py --check    # fail if the README differs from broca-out

`broca-out/demo.cast` is an asciicast (version 2) of all that the command printed, with times.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
import time
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import fill

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
FOLDER = DOCS.parent / "broca-out"
CAST = FOLDER / "demo.cast"
ANIMATION = DOCS / "pictures" / "demo.svg"
GRID = DOCS / "pictures" / "grid.svg"
COMMAND = ("localize", "reference", "--task", "addition")

COLUMNS, ROWS = 96, 27
TALL = 400
"""Number of lines of the emulated terminal; nothing may scroll out of it."""

RUN_FRAMES, RUN_SECONDS, TYPING_SECONDS, HOLD_SECONDS = 40, 9.0, 1.2, 7.0
CELL, LINE, MARGIN = 8.0, 17, 14
BACKGROUND, FOREGROUND = "#16191d", "#d7dce2"
COLOURS = {
    "black": "#5c6773", "red": "#ff8f7a", "green": "#8fd18a", "brown": "#e5c07b",
    "blue": "#7db3f5", "magenta": "#d7a1e8", "cyan": "#7fd3d6", "white": "#f2f4f7",
}  # fmt: skip
"""The colours that pyte names; it calls yellow brown."""

START, END = "<!-- demo: `python docs/demo.py` writes these lines -->\n", "<!-- end of demo -->\n"


def record() -> None:
    """Runs the demo in a pseudo-terminal and writes what it prints to `CAST`."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color"}
        os.environ.pop("COLUMNS", None)
        arguments = [sys.executable, "-m", "broca", *COMMAND, "--fresh", "--out", str(FOLDER)]
        os.execv(sys.executable, arguments)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    start = time.monotonic()
    events: list[tuple[float, str]] = []
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # on Linux: the process of the terminal has ended
            break
        if not data:
            break
        text = data.decode("utf-8", "replace").replace(str(FOLDER), "broca-out")
        events.append((round(time.monotonic() - start, 3), text))
    _, status = os.waitpid(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        sys.exit(f"the demo ended with exit code {code}:\n{''.join(text for _, text in events)}")
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "command": " ".join(COMMAND)}
    lines = [header, *([when, "o", text] for when, text in events)]
    CAST.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


@dataclass(frozen=True)
class Frame:
    """A picture of the terminal and its duration.

    Attributes:
        lines: At most `ROWS` lines as SVG.
        seconds: Duration in seconds.
    """

    lines: tuple[str, ...]
    seconds: float


def frames() -> list[Frame]:
    """Returns the frames: the command is typed, the run is sped up, the last screen stays."""
    import pyte

    _, *events = map(json.loads, CAST.read_text().splitlines())
    screen = pyte.Screen(COLUMNS, TALL)
    stream = pyte.Stream(screen)
    prompt = "$ "
    typed = " ".join(("broca", *COMMAND))
    stream.feed(prompt)
    shown = []
    for word in typed.split(" "):
        stream.feed(word + " ")
        shown.append(Frame(_window(screen), TYPING_SECONDS / len(typed.split(" "))))
    stream.feed("\r\n")
    length = events[-1][0]
    next_frame = 0.0
    for when, _, text in events:
        stream.feed(text)
        if when >= next_frame:
            shown.append(Frame(_window(screen), RUN_SECONDS / RUN_FRAMES))
            next_frame = when + length / RUN_FRAMES
    _require_verdict(screen)
    shown.append(Frame(_window(screen), HOLD_SECONDS))
    return [frame for frame in shown if frame.lines]


def _require_verdict(screen) -> None:
    """Ends the script if the answer, which the command prints last, was not recorded."""
    if not any(re.match(r"\w\S* needs |Ablating |\w\S* has no ", text) for text in screen.display):
        sys.exit("the recording has no verdict: record it again")


def _window(screen) -> tuple[str, ...]:
    """Returns the visible lines, the last written ones."""
    filled = [number for number, text in enumerate(screen.display) if text.strip()]
    first = max(0, max(filled, default=0) - ROWS + 1)
    lines = [_line(screen.buffer[number]) for number in range(first, first + ROWS)]
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


def _line(cells) -> str:
    """Returns a line of the terminal as SVG spans of equal style, each at its column."""
    spans: list[tuple[int, str, tuple[str, bool]]] = []
    for column in range(COLUMNS):
        cell = cells[column]
        style = (_colour(cell.fg), cell.bold)
        if spans and spans[-1][2] == style:
            start, text, _ = spans[-1]
            spans[-1] = (start, text + cell.data, style)
        else:
            spans.append((column, cell.data, style))
    parts = []
    for start, text, (colour, bold) in spans:
        if not text.strip():
            continue
        start += len(text) - len(text.lstrip())
        text = text.strip()
        look = f' fill="{colour}"' * (colour != FOREGROUND) + ' font-weight="bold"' * bold
        parts.append(
            f'<tspan x="{MARGIN + start * CELL:g}" textLength="{len(text) * CELL:g}"{look}>'
            f"{escape(text, quote=False)}</tspan>"
        )
    return "".join(parts)


def _colour(name: str) -> str:
    name = name.removeprefix("bright")
    return COLOURS.get(name, f"#{name}" if re.fullmatch("[0-9a-f]{6}", name) else FOREGROUND)


def draw() -> None:
    """Writes the animation: a strip of all frames, of which one is visible at a time.

    The last frame comes first in the strip, so that a viewer without animation shows the answer.
    """
    shown = frames()
    width = int(2 * MARGIN + COLUMNS * CELL)
    height = 2 * MARGIN + ROWS * LINE
    names = {
        line: f"l{number}"
        for number, line in enumerate(
            dict.fromkeys(line for frame in shown for line in frame.lines if line)
        )
    }
    total = sum(frame.seconds for frame in shown)
    strip, steps, when = [], [], 0.0
    for number, frame in enumerate(shown):
        place = (number + 1) % len(shown)
        uses = "".join(
            f'<use href="#{names[line]}" y="{place * height + MARGIN + (row + 1) * LINE - 4}"/>'
            for row, line in enumerate(frame.lines)
            if line
        )
        strip.append(uses)
        steps.append(f"{100 * when / total:.2f}%{{transform:translateY(-{place * height}px)}}")
        when += frame.seconds
    texts = "".join(f'<text id="{name}">{line}</text>' for line, name in names.items())
    ANIMATION.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="broca {" ".join(COMMAND)} in a terminal">'
        f"<style>text{{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        f"fill:{FOREGROUND};white-space:pre}}"
        f".strip{{animation:play {total:.1f}s steps(1,end) infinite}}"
        f"@keyframes play{{{''.join(steps)}}}"
        "@media (prefers-reduced-motion:reduce){.strip{animation:none}}</style>"
        f'<defs>{texts}</defs><rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>'
        f'<g class="strip">{"".join(strip)}</g></svg>\n',
        encoding="utf-8",
    )


def readme() -> str:
    """Returns the README with the lines of the result in `FOLDER`."""
    import broca

    result = broca.read(FOLDER)
    sentences = (f"{result.headline}.", f"{result.verdict.label}: {result.verdict.text}")
    lines = [fill(sentence, 100) for sentence in sentences]
    block = "```text\n" + "\n".join(lines) + "\n```\n"
    text = README.read_text(encoding="utf-8")
    return text[: text.index(START)] + START + block + text[text.index(END) :]


def main() -> None:
    """Records and draws the demo, or checks the README, as the options say."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draw", action="store_true", help="use the recording in broca-out")
    parser.add_argument("--check", action="store_true", help="compare the README, write nothing")
    options = parser.parse_args()
    if options.check:
        if readme() != README.read_text(encoding="utf-8"):
            sys.exit("README.md shows another demo: run `python docs/demo.py`")
        return
    import broca

    if not options.draw:
        record()
    draw()
    broca.read(FOLDER).plot().save(GRID)
    README.write_text(readme(), encoding="utf-8")


if __name__ == "__main__":
    main()
