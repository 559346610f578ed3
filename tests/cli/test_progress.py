"""The progress of a run on stderr: a bar with its steps, or plain lines."""

import io
import subprocess
import sys

import pytest
from rich.console import Console

from broca.cli.progress import FIRST, PrintOptions, ProgressDisplay
from broca.engine import Progress


def console(width=80, encoding="utf-8"):
    """Returns a terminal of `width` columns that keeps what is written."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(file=file, force_terminal=True, width=width, color_system=None)


@pytest.fixture
def show():
    """Returns a function that makes a display on a terminal, by default with a clock at 0."""
    made = []

    def make(clock=lambda: 0.0, **terminal):
        made.append(ProgressDisplay(PrintOptions(), console=console(**terminal), clock=clock))
        return made[-1]

    yield make
    for display in made:
        display.close()


def test_plain_progress_is_one_line_a_stage(capsys):
    """`--plain` prints a line for each stage on stderr, and in a long one its rows each minute."""
    now = [0.0]
    display = ProgressDisplay(PrintOptions(plain=True), clock=lambda: now[0])
    assert capsys.readouterr().err.splitlines() == [FIRST]
    for minute in range(4):
        now[0] = 45.0 * minute
        display("searching", Progress(minute, 4, 10, seconds_left=200 - now[0]))
    display("note: a task is near chance", None)
    display("searching", None)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "searching", "searching: 2 of 4 rows  1 min 50 s left", "note: a task is near chance",
    ]  # fmt: skip


def test_quiet_says_nothing(capsys):
    """`--quiet` prints neither stages nor notes."""
    display = ProgressDisplay(PrintOptions(quiet=True))
    display("searching", Progress(1, 3, 10))
    display("note: of something", None)
    display.close()
    assert capsys.readouterr() == ("", "")


def test_one_bar_stands_above_the_steps(show):
    """The bar shows the progress and the time left of the run, every step below it its time."""
    now = [0.0]
    display = show(clock=lambda: now[0])
    display("scoring", Progress(20, 100, 0, seconds_left=200.0))
    display("searching", None)
    lines = display._picture().plain.splitlines()
    assert lines[0].endswith("20 %  20 of 100 rows  3 min 20 s left")
    assert lines[1:] == [f"✓ {FIRST}  0.0 s", "✓ scoring  0.0 s", "▸ searching  0.0 s"]
    display("searching", Progress(50, 100, 0, seconds_left=30.0))
    for passed, left in ((12.0, "18 s left"), (40.0, "0.0 s left")):  # without another report
        now[0] = passed
        assert display._picture().plain.splitlines()[0].endswith(f"50 %  50 of 100 rows  {left}")


def test_no_line_wraps(show):
    """Long lines end in an ellipsis, and all lines are shorter than the terminal is wide."""
    display = show(width=40)
    display("reference: " + "96 heads in 6 layers, " * 9, None)
    display("searching", Progress(5_000, 1_000_000, 0, seconds_left=7500.0))
    lines = display._picture().plain.splitlines()
    assert max(map(len, lines)) < 40
    assert "…" in lines[2]


def test_a_terminal_without_unicode_gets_ascii(show):
    """A terminal without Unicode, as under the C locale, shows a bar of `#`."""
    display = show(encoding="ascii")
    display("searching", Progress(50, 100, 0, seconds_left=1.0))
    picture = display._picture().plain
    assert picture.isascii()
    assert "###" in picture


MEASURING = (
    "localize reference --task addition", "verify reference --heads L0H1 --task addition",
    "atlas reference", "compare reference planted --tasks addition",
    "stress reference --heads L0H1", "neurons locate reference --task addition",
    "neurons erase reference --task addition",
    "reproduce table2 reference", "plan reference --task addition", "scan reference",
    "explore reference",
)  # fmt: skip


def test_the_first_line_stands_before_torch_is_imported(tmp_path):
    """Every command that measures shows progress before it imports a heavy library."""
    code = """
import sys
from broca.cli import main
from broca.cli.progress import ProgressDisplay

HEAVY = {"torch", "transformers", "lm_eval", "datasets", "sklearn", "matplotlib"}

class Shown(Exception):
    pass

def show(self, *_, **__):
    raise Shown

ProgressDisplay.__init__ = show
for line in sys.argv[1:]:
    sys.argv = ["broca", *line.split()]
    try:
        main()
    except Shown:
        print(line, sorted(HEAVY & set(sys.modules)))
"""
    command = [sys.executable, "-c", code, *MEASURING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.stdout.splitlines() == [f"{line} []" for line in MEASURING], done.stderr
