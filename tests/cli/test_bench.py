"""`broca bench` prints tables, writes files and refuses bad input."""

import inspect
import sys

import pytest

from broca.cli import bench as module
from broca.cli import main

FEW = (
    "--tasks", "rhyming", "--others", "capitals", "--methods", "gradient,greedy",
    "--budgets", "60", "--items", "12", "--report-items", "20", "--exhaustive", "0", "--plain",
)  # fmt: skip


@pytest.fixture
def run(monkeypatch, capsys):
    """Returns a function that runs a command line and gives its exit code, stdout and stderr."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["broca", "bench", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return end.value.code, " ".join(captured.out.split()), captured.err

    return command


def test_methods_prints_the_table_and_goes_on(run, tmp_path):
    """The table has the refusals too, and a second run measures nothing."""
    code, printed, progress = run("methods", "planted", *FEW, "--out", tmp_path)
    assert code == 0, progress
    assert "cell 2 of 2: greedy on rhyming, budget 60, seed 0" in progress
    for text in (
        "methods on planted",
        "refused: `rows` 60 is too few for greedy",
        "A budget is rows for each measured task",
        "2 cells run",
    ):
        assert text in printed
    code, printed, progress = run("methods", "planted", *FEW, "--out", tmp_path)
    assert code == 0, progress
    assert "0 cells run" in printed
    assert "cell 1" not in progress


def test_simulations_print_their_table(run, tmp_path):
    """`bench simulations` prints a table and keeps its results in the out folder."""
    arguments = ("--methods", "gradient", "--components", "96", "--rows", "60", "--seeds", 2)
    code, printed, progress = run(
        "simulations", *arguments, "--scenarios", "heavy", "--out", tmp_path
    )
    assert code == 0, progress
    assert "96 heavy gradient 60" in printed.replace("│", "").replace("  ", " ")
    assert len(list((tmp_path / "simulations").iterdir())) == 2


def test_ctrl_c_prints_the_command_that_continues(run, tmp_path, monkeypatch):
    """Ctrl+C gives exit code 130, and the message has the command that continues the run."""
    import broca.studies.methods

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(broca.studies.methods, "compare_methods", interrupted)
    code, printed, progress = run("methods", "planted", *FEW, "--out", tmp_path)
    assert (code, printed) == (130, "")
    assert "this goes on: broca bench methods planted" in progress


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("methods", "planted", "--budgets", "few"), "--budgets: 'few'"),
        (("methods", "planted", "--seeds", "0"), "--seeds must be at least 1"),
        (("methods", "plantd", "--methods", "gradient"), "plantd"),
        (("simulations", "--components", "some"), "--components: 'some'"),
        (("simulations", "--rows", ","), "--rows names no number"),
        (("simulations", "--scenarios", "hevy"), "did you mean 'heavy'"),
    ],
)
def test_bad_input_is_one_line(run, arguments, message, tmp_path):
    """Bad input is refused in one line with exit code 2, and stdout stays empty."""
    code, printed, progress = run(*arguments, "--plain", "--out", tmp_path)
    assert (code, printed) == (2, "")
    (line,) = [line for line in progress.splitlines() if line.startswith("broca: ")]
    assert message in line
    assert "Traceback" not in progress


def test_options_are_those_of_the_library():
    """The default candidate of the command is that of the library."""
    from broca.studies.methods import CANDIDATE

    parameters = inspect.signature(module.methods).parameters
    assert parameters["candidate"].default == CANDIDATE
