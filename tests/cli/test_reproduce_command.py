"""`broca reproduce`: files, clean stdout, help from the list of names, refusals in one line."""

import csv
import io
import json
import sys

import pytest

from broca.cli import main
from broca.reproduce import NAMES

FEW = ("--tasks", "capitals,rhyming", "--rows", "400", "--items", "10", "--limit", "8")


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command line; gives its exit code, stdout and stderr."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["broca", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        told = capsys.readouterr()
        return end.value.code, told.out, told.err

    return command


def test_csv_on_stdout_files_beside_and_a_second_time_from_the_journal(run, tmp_path):
    """The same table again, as JSON; the searches' rows are kept in the folder."""
    code, told, progress = run("reproduce", "table9", "planted", *FEW, "--out", tmp_path, "--plain")
    assert code == 0, progress
    rows = list(csv.DictReader(io.StringIO(told)))
    assert [row["task"] for row in rows] == ["capitals", "rhyming"]
    assert "cs-stratified on capitals" in progress
    assert "table9-planted.html" in progress
    names = {path.name for path in tmp_path.iterdir()}
    assert {f"table9-planted.{end}" for end in ("json", "csv", "html")} <= names
    assert "journal.sqlite" in names
    code, told, _ = run(
        "reproduce", "table9", "planted", *FEW, "--out", tmp_path, "--plain", "--json"
    )
    assert code == 0
    assert [row["heads"] for row in json.loads(told)["rows"]] == [row["heads"] for row in rows]


def test_help_lists_what_can_be_reproduced(run):
    """From the list of names, so that none is forgotten."""
    code, told, _ = run("reproduce", "--help")
    assert code == 0
    words = "".join(told.split())
    assert all(f"{name}," in words for name in NAMES)


def test_unknown_names_are_one_line(run, tmp_path):
    """Exit code 2, nothing on stdout."""
    code, told, progress = run("reproduce", "tabel9", "planted", "--out", tmp_path, "--plain")
    assert (code, told) == (2, "")
    assert "did you mean 'table9'" in progress
    assert "Traceback" not in progress
