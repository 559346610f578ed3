"""`broca reproduce` writes files, prints CSV or JSON and refuses unknown names."""

import csv
import io
import json

from cli.running import broca

from broca.studies.paper import NAMES

FEW = ("--tasks", "rhyming", "--rows", "400", "--items", "10", "--limit", "8")


def test_csv_on_stdout_files_beside_and_a_second_time_from_the_journal(tmp_path):
    """A run prints CSV and writes files and a journal; a second one prints the same as JSON."""
    command = ("reproduce", "table9", "planted", *FEW, "--out", tmp_path, "--plain")
    done = broca(*command)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["task"] for row in rows] == ["rhyming"]
    assert "cs-stratified on rhyming" in done.stderr
    assert "table9-planted.html" in done.stderr
    names = {path.name for path in tmp_path.iterdir()}
    assert {f"table9-planted.{end}" for end in ("json", "csv", "html")} <= names
    assert "journal.sqlite" in names
    again = broca(*command, "--json")
    assert again.returncode == 0
    assert [row["heads"] for row in json.loads(again.stdout)["rows"]] == [
        row["heads"] for row in rows
    ]
    several = broca("reproduce", "table9,table5", *command[2:], "--json")
    assert [data["name"] for data in json.loads(several.stdout)] == ["table9", "table5"]


def test_help_lists_what_can_be_reproduced():
    """The help has every name that can be reproduced."""
    done = broca("reproduce", "--help")
    assert done.returncode == 0
    words = "".join(done.stdout.split())
    assert all(f"{name}," in words for name in NAMES)
