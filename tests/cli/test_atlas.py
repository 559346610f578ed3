"""`broca atlas`: files, table, JSON, and refusals in one line; run within this process."""

import json
import sys

import pytest

import broca
from broca.cli import main
from broca.results.codec import decode

FEW = ("--tasks", "rhyming,capitals", "--rows", "400", "--items", "20")


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command line; gives its exit code, stdout and stderr."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["broca", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        told = capsys.readouterr()
        return end.value.code, " ".join(told.out.split()), told.err

    return command


def test_run_resume_and_refusals_of_the_folder(run, tmp_path):
    """Files, a table, JSON on stdout the second time, and no other command in the same folder."""
    out = tmp_path / "atlas"
    code, told, progress = run("atlas", "planted", *FEW, "--out", out, "--plain")
    assert code == 0, progress
    for text in ("rhyming", "facts", "universal", "key/value groups", "localize", "atlas.html"):
        assert text in told
    assert "measuring 2 tasks under random masks" in progress
    found = broca.Atlas.read(out)
    assert (out / "atlas.html").is_file()
    code, told, progress = run("atlas", "planted", *FEW, "--out", out, "--json")
    assert code == 0, progress
    assert "finished; nothing to do" in progress
    assert decode(broca.Atlas, told).effects == found.effects
    assert json.loads(told)["cost"]["rows"] <= 400
    code, told, progress = run("atlas", "planted", *FEW, "--seed", 1, "--out", out)
    assert (code, told) == (2, "")
    assert "holds another run: there --seed is 0" in progress
    code, _, progress = run("rerun", out)
    assert code == 2
    assert "holds no run of `broca localize`" in progress


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tasks", "rhyming"), "names 1 task"),
        (("--tasks", "rhyming,capitals", "--rows", "100"), "--rows 100 is too few for an atlas"),
    ],
)
def test_bad_input_is_one_line(run, arguments, message, tmp_path):
    """Exit code 2, no traceback, nothing on stdout."""
    code, told, progress = run("atlas", "planted", *arguments, "--plain", "--out", tmp_path)
    assert (code, told) == (2, "")
    (line,) = [line for line in progress.splitlines() if line.startswith("broca: ")]
    assert message in line
    assert "Traceback" not in progress
