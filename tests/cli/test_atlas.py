"""`broca atlas` writes files, prints a table or JSON, and refuses bad input in one line."""

import json
import sys

import pytest

import broca
from broca.cli import main
from broca.results.files import decode

FEW = ("--tasks", "rhyming,capitals", "--rows", "400", "--items", "20")


@pytest.fixture
def run(monkeypatch, capsys):
    """Returns a function that runs a command line and gives its exit code, stdout and stderr."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["broca", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return end.value.code, " ".join(captured.out.split()), captured.err

    return command


def test_run_resume_and_refusals_of_the_folder(run, tmp_path):
    """A run writes its files, a second one prints JSON, and another run is refused there."""
    out = tmp_path / "atlas"
    code, printed, progress = run("atlas", "planted", *FEW, "--out", out, "--plain")
    assert code == 0, progress
    for text in ("rhyming", "facts", "universal", "key/value groups", "localize", "atlas.html"):
        assert text in printed
    assert "measuring 2 tasks under random masks" in progress
    atlas = broca.Atlas.read(out)
    assert (out / "atlas.html").is_file()
    code, printed, progress = run("atlas", "planted", *FEW, "--out", out, "--json")
    assert code == 0, progress
    assert "finished; nothing to do" in progress
    assert decode(broca.Atlas, printed).effects == atlas.effects
    assert json.loads(printed)["cost"]["rows"] <= 400
    code, printed, progress = run("atlas", "planted", *FEW, "--seed", 1, "--out", out)
    assert (code, printed) == (2, "")
    assert "holds another run: there --seed is 0" in progress
    code, _, progress = run("rerun", out)
    assert code == 2
    assert "holds no run of `broca localize`" in progress
