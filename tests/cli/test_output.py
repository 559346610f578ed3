"""Output of commands: results in words, tables and JSON; stdout holds only results."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from results.samples import WITH_PAGES, make_export, make_neurons, make_result

from broca.cli.output import console, print_table, show
from broca.cli.progress import PrintOptions, ProgressDisplay
from broca.cli.wording import say
from broca.engine import Progress
from broca.results.base import Interval
from broca.results.files import encode
from broca.results.neurons import LocatedNeuron
from broca.results.pages.tables import Column, Table, fixed, interval
from broca.results.verification import Verdict

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
    assert ("\x1b[32m" in capsys.readouterr().out) == (variable != "NO_COLOR")


def test_the_verdict_and_the_next_command_come_last(capsys):
    """A short table, the verdict, the page, the next command; with details all that is known."""
    result = make_result()
    printed = []
    for details in (False, True):
        show(result, Path("out/report.html"), json=False, details=details, then="broca explore out")
        printed.append(capsys.readouterr().out)
        assert printed[-1].endswith("report: out/report.html\nnext: broca explore out\n")
        assert printed[-1].index("adding") < printed[-1].index(result.headline)
    assert ["note: three prompts were cut" in text for text in printed] == [False, True]


def test_words_wrap_between_words(monkeypatch, capsys):
    """On a narrow terminal lines break between words, below the column of their text."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    say("isolation  bubblewrap makes namespaces of its own, without a network")
    assert capsys.readouterr().out.splitlines() == [
        "isolation  bubblewrap makes namespaces", "           of its own, without a network",
    ]  # fmt: skip


@pytest.mark.parametrize("make", [*WITH_PAGES, make_export])
def test_a_result_is_shown_as_json_or_in_words(capsys, make):
    """`show` prints the file as JSON, or lines, tables and notes, then the path of the page."""
    result = make()
    show(result, Path("a [b].html"), json=True)
    assert capsys.readouterr().out == encode(result)
    show(result, Path("a [b].html"), json=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert {f"note: {note}" for note in getattr(result, "notes", ())} <= {*lines}
    assert lines[-1] == "report: a [b].html"
    assert "−" not in "".join(lines)


def test_a_table_of_a_page_is_printed_without_unknown_columns(capsys):
    """Words are aligned left, numbers right with plain signs; unknown cells are empty."""
    table = Table(
        "tasks", "Scores of tasks",
        (Column("task"), Column("drop", show=fixed(1)), Column("chance", show=fixed(1)),
         Column("drop ", show=interval)),
        (("adding", -1.25, None, Interval(0.5, 0.25, 1)), ("sorting", 2.5, None, None)),
        strong=frozenset({1}),
    )  # fmt: skip
    print_table(console(), table)
    lines = [line.strip("│┃") for line in capsys.readouterr().out.splitlines()]
    cells = [[cell.strip() for cell in re.split("[│┃]", line)] for line in lines]
    assert "Scores of tasks" in lines[0]
    assert cells[2] == ["task", "drop", "drop"]
    assert cells[4] == ["adding", "-1.2", "+0.50 [+0.25, +1.00]"]
    assert cells[5] == ["sorting", "2.5", ""]
    assert lines[5].startswith(" sorting ")
    assert lines[5].split("│")[1] == "  2.5 "
    print_table(console(), table.pick(most=0))
    assert capsys.readouterr().out == ""


@pytest.fixture
def shown(capsys):
    """Returns a function that shows a result and returns its lines."""

    def lines_of(result):
        show(result, Path("page.html"), json=False)
        return capsys.readouterr().out.splitlines()

    return lines_of


def test_the_verdict_leads_and_an_abstention_has_no_table(shown):
    """The headline and the verdict come first; an abstention prints only its reason."""
    result = make_result()
    verdict = Verdict("partly specific", "adding loses 96.", headline="Ablating L1H2 costs 96")
    verified = replace(result.verification, verdict=verdict)
    first, second, *others = shown(replace(result, verification=verified))
    assert (first, second) == ("Ablating L1H2 costs 96.", "partly specific: adding loses 96.")
    text = "\n".join(others)
    for row in ("largest of the others: sorting", "specific to adding", "points lost"):
        assert row in text
    nothing = shown(make_result(selected=(), abstained=True, reason="no harm is sure"))
    assert "Nothing was selected: no harm is sure." in nothing
    assert "points lost" not in "".join(nothing)


def test_located_neurons_are_listed_up_to_a_number(shown):
    """Best first; how many more there are."""
    several = tuple(LocatedNeuron(f"L0N{n}", 0, n, 1.0, 3.0) for n in range(20 + 3))
    text = "\n".join(shown(replace(make_neurons(), selected=several)))
    assert "L0N19" in text
    assert "L0N20 " not in text
    assert "... and 3 more" in text


def test_other_writers_to_stdout_are_sent_to_stderr(monkeypatch):
    """Messages of Python code, native libraries and child processes go to stderr.

    JSON is UTF-8, and other text has codes for what the encoding of stdout lacks.
    """
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    ended = subprocess.run([sys.executable, "-c", NOISY], capture_output=True, check=True)
    assert ended.stdout.decode() == '{\n  "selected": [\n    "L0H1"\n  ],\n  "task": "üben"\n}\n'
    assert ended.stderr == b"a task file\na native library\na worker died\n"
    code = NOISY.replace("json=True", "")
    assert rb"\xfcben" in subprocess.check_output([sys.executable, "-c", code])
