"""Output of commands: stdout holds only results."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from results.samples import (
    make_atlas,
    make_comparison,
    make_experiment,
    make_export,
    make_neurons,
    make_refit,
    make_result,
    make_stress,
)
from simulated import toy_verification

from broca.cli.output import console, print_table, show
from broca.cli.progress import PrintOptions, ProgressDisplay
from broca.engine import Progress
from broca.results.base import Interval
from broca.results.files import encode
from broca.results.neurons import EXPERIMENTS
from broca.results.pages.tables import Column, Table, fixed, interval

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


@pytest.mark.parametrize("make", [
    make_result, toy_verification, make_atlas, make_stress, make_comparison, make_refit,
    make_neurons, *(lambda verb=verb: make_experiment(verb) for verb in EXPERIMENTS), make_export,
])  # fmt: skip
def test_a_result_is_shown_as_json_or_in_words(capsys, make):
    """`show` prints the file as JSON, or lines and tables, then the path of the page."""
    result = make()
    show(result, Path("a [b].html"), json=True)
    assert capsys.readouterr().out == encode(result)
    show(result, Path("a [b].html"), json=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert lines[-1] == "report: a [b].html"
    assert "−" not in "".join(lines)


def page_table():
    """Returns a page's table of numbers, words, an unknown column and an emphasized row."""
    return Table(
        "tasks", "Scores of tasks",
        (Column("task"), Column("drop", show=fixed(1)), Column("chance", show=fixed(1)),
         Column("drop ", show=interval)),
        (("adding", -1.25, None, Interval(0.5, 0.25, 1)), ("sorting", 2.5, None, None)),
        strong=frozenset({1}),
    )  # fmt: skip


def test_a_table_of_a_page_is_printed_without_unknown_columns(capsys, monkeypatch):
    """Words are aligned left, numbers right with plain signs; unknown cells are empty."""
    monkeypatch.setenv("COLUMNS", "80")
    print_table(console(), page_table())
    lines = [line.strip("│┃") for line in capsys.readouterr().out.splitlines()]
    cells = [[cell.strip() for cell in re.split("[│┃]", line)] for line in lines]
    assert "Scores of tasks" in lines[0]
    assert cells[2] == ["task", "drop", "drop"]
    assert cells[4] == ["adding", "-1.2", "+0.50 [+0.25, +1.00]"]
    assert cells[5] == ["sorting", "2.5", ""]
    assert lines[5].startswith(" sorting ")
    assert lines[5].split("│")[1] == "  2.5 "
    print_table(console(), page_table().pick(most=0))
    assert capsys.readouterr().out == ""


def test_other_writers_to_stdout_are_sent_to_stderr():
    """Messages of Python code, native libraries and child processes go to stderr."""
    ended = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", NOISY], capture_output=True, check=True
    )
    assert ended.stdout.decode() == '{\n  "selected": [\n    "L0H1"\n  ],\n  "task": "üben"\n}\n'
    assert ended.stderr == b"a task file\na native library\na worker died\n"


def test_a_closed_stdout_is_left_alone():
    """A stdout that the shell has closed (`broca ... >&-`) raises no error."""
    program = "from broca.cli.output import keep_stdout_for_results as keep; keep()"
    command = f'exec "{sys.executable}" -c "{program}" >&-'
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
