"""Output of commands: stdout holds only results."""

import subprocess
import sys
from pathlib import Path

import pytest

from broca.cli.commands import PrintOptions
from broca.cli.output import (
    console,
    interval_text,
    keep_stdout_for_results,
    points,
    print_lines,
    show,
)
from broca.cli.progress import ProgressDisplay
from broca.engine import Progress
from broca.results.base import AblationInfo, Interval, ModelInfo
from broca.results.codec import encode
from broca.results.export import BaseModel, Export

NOISY = """
import os, subprocess, sys
from broca.cli.output import keep_stdout_for_results, print_json
keep_stdout_for_results(json=True)
print("a task file")
os.write(1, b"a native library\\n")
subprocess.run([sys.executable, "-c", "print('a worker died')"])
print_json({"selected": ["L0H1"], "task": "\\u00fcben"})
"""


@pytest.mark.parametrize("variable", ["COLOUR", "NO_COLOR"])
def test_no_color_takes_the_colours(monkeypatch, capsys, variable):
    """`NO_COLOR` removes the colours of text and of the bar on a terminal (no-color.org)."""
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm-256color"), (variable, "1")):
        monkeypatch.setenv(name, value)
    screen = console()
    screen.print("needed", style="green")
    display = ProgressDisplay(PrintOptions(), clock=lambda: 0.0)
    display("searching", Progress(50, 100, 0, seconds_left=1.0))
    screen.print(display._picture())
    display.close()
    green = "\x1b[32m" in capsys.readouterr().out
    assert green == (variable != "NO_COLOR")


def test_a_result_is_shown_as_json_or_in_words(capsys):
    """`show` prints the encoded result as JSON, or its text with the path of the page."""
    result = Export(
        form="heads", model=ModelInfo("m", "f"), base=BaseModel("m", None, ""),
        components=("L0H0",), ablation=AblationInfo("zero", 0.0), files={"heads.json": 7},
    )  # fmt: skip

    def in_words(result, page):
        print_lines(console(), result.components, f"page: {page}")

    show(result, Path("a [b].html"), PrintOptions(json=True), in_words)
    assert capsys.readouterr().out == encode(result)
    show(result, Path("a [b].html"), PrintOptions(), in_words)
    assert capsys.readouterr().out == "L0H0\npage: a [b].html\n"


def test_intervals_are_shown_in_their_unit_or_in_points():
    """An interval has a form and a scale; a share is shown in points, an unknown one is empty."""
    assert interval_text(Interval(-1.234, -2, 0.001)) == "-1.23 [-2.00, +0.00]"
    assert interval_text(Interval(-1.234, -2, 0.001), ".3f") == "-1.234 [-2.000, 0.001]"
    assert points(Interval(0.1234, -0.1, 0.5)) == "12.3 [-10.0, 50.0]"
    assert points(None) == ""


def test_other_writers_to_stdout_are_sent_to_stderr():
    """Messages of Python code, native libraries and child processes go to stderr."""
    ended = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", NOISY], capture_output=True, check=True
    )
    assert ended.stdout.decode() == '{\n  "selected": [\n    "L0H1"\n  ],\n  "task": "üben"\n}\n'
    assert ended.stderr == b"a task file\na native library\na worker died\n"


def test_a_captured_stdout_stays_as_it_is(capsys):
    """A stdout in memory stays, because other processes cannot write to it."""
    captured = sys.stdout
    keep_stdout_for_results()
    assert sys.stdout is captured


def test_a_closed_stdout_is_left_alone():
    """A stdout that the shell has closed (`broca ... >&-`) raises no error."""
    program = "from broca.cli.output import keep_stdout_for_results as keep; keep()"
    command = f'exec "{sys.executable}" -c "{program}" >&-'
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
