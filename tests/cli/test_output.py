"""Output of commands: stdout holds only results."""

import re
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
    print_page_table,
    show,
)
from broca.cli.progress import ProgressDisplay
from broca.engine import Progress
from broca.results.base import AblationInfo, Interval, ModelInfo
from broca.results.export import BaseModel, Export
from broca.results.files import encode
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


def page_table():
    """Returns a page's table of numbers, words, an unknown column and an emphasized row."""
    return Table(
        "tasks", "Scores of tasks",
        (Column("task", words=True), Column("drop", fixed(1)), Column("chance", fixed(1)),
         Column("drop ", interval)),
        (("adding", -1.25, None, Interval(0.5, 0.25, 1)), ("sorting", 2.5, None, None)),
        strong=frozenset({1}),
    )  # fmt: skip


def test_a_table_of_a_page_is_printed_without_unknown_columns(capsys, monkeypatch):
    """Words are aligned left, numbers right with plain signs; unknown cells are empty."""
    monkeypatch.setenv("COLUMNS", "80")
    print_page_table(console(), page_table())
    lines = [line.strip("│┃") for line in capsys.readouterr().out.splitlines()]
    cells = [[cell.strip() for cell in re.split("[│┃]", line)] for line in lines]
    assert "Scores of tasks" in lines[0]
    assert cells[2] == ["task", "drop", "drop"]
    assert cells[4] == ["adding", "-1.2", "+0.50 [+0.25, +1.00]"]
    assert cells[5] == ["sorting", "2.5", ""]
    assert lines[5].startswith(" sorting ")
    assert lines[5].split("│")[1] == "  2.5 "


def test_columns_and_rows_of_a_page_table_can_be_chosen(capsys, monkeypatch):
    """Chosen columns are printed in the given order, up to a number of rows."""
    monkeypatch.setenv("COLUMNS", "80")
    print_page_table(console(), page_table(), "drop|task", most=1)
    text = capsys.readouterr().out
    assert text.index("drop") < text.index("task ")
    assert "adding" in text
    assert "sorting" not in text
    print_page_table(console(), page_table(), most=0)
    assert capsys.readouterr().out == ""


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
