"""`broca bench`: tables, files and refusals; run within this process."""

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
    """Runs a command line; gives its exit code, stdout and stderr."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["broca", "bench", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as end:
            main()
        told = capsys.readouterr()
        return end.value.code, " ".join(told.out.split()), told.err

    return command


def test_methods_prints_the_table_and_goes_on(run, tmp_path):
    """Refusals are in it; the second time nothing is measured."""
    code, told, progress = run("methods", "planted", *FEW, "--out", tmp_path)
    assert code == 0, progress
    assert "cell 2 of 2: greedy on rhyming, budget 60, seed 0" in progress
    for text in (
        "methods on planted",
        "refused: `rows` 60 is too few for greedy",
        "A budget is rows for each measured task",
        "2 cells run",
    ):
        assert text in told
    code, told, progress = run("methods", "planted", *FEW, "--out", tmp_path)
    assert code == 0, progress
    assert "0 cells run" in told
    assert "cell 1" not in progress


def test_simulations_print_their_table(run, tmp_path):
    """And are kept in the same folder."""
    few = ("--methods", "gradient", "--components", "96", "--rows", "60", "--seeds", 2)
    code, told, progress = run("simulations", *few, "--scenarios", "heavy", "--out", tmp_path)
    assert code == 0, progress
    assert "96 heavy gradient 60" in told.replace("│", "").replace("  ", " ")
    assert len(list((tmp_path / "simulations").iterdir())) == 2


def test_ctrl_c_names_what_goes_on(run, tmp_path, monkeypatch):
    """Exit code 130, one line; finished cells are kept."""
    import broca.studies.methods

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(broca.studies.methods, "compare_methods", interrupted)
    code, told, progress = run("methods", "planted", *FEW, "--out", tmp_path)
    assert (code, told) == (130, "")
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
    """Exit code 2, no traceback, nothing on stdout."""
    code, told, progress = run(*arguments, "--plain", "--out", tmp_path)
    assert (code, told) == (2, "")
    assert message in progress
    assert "Traceback" not in progress


def test_options_are_those_of_the_library():
    """The default candidate is one name in one place."""
    from broca.studies.methods import CANDIDATE

    parameters = inspect.signature(module.methods).parameters
    assert parameters["candidate"].default == CANDIDATE
