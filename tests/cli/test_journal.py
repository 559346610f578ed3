"""`broca journal` shows and exports a journal."""

import json

import pytest
from cli.running import assert_refused, broca
from journals import filled, observed

from broca.store import Journal


@pytest.fixture
def file(tmp_path):
    """A journal with a finished run."""
    with Journal(tmp_path / "j.sqlite") as journal:
        run, *_ = filled(journal)
        observed(journal, run)
        journal.finish_run(run)
    return tmp_path / "j.sqlite"


def test_contents_are_shown_as_text_and_json(file):
    """The text and the JSON have the numbers of rows and of vectors by kind, and the runs."""
    shown = broca("journal", file)
    assert shown.returncode == 0, shown.stderr
    assert "12 rows" in shown.stdout
    assert "attribution: 5 vectors" in shown.stdout
    assert "run 1: no task by verify: 17 rows measured, 12 tokens, finished" in shown.stdout
    content = json.loads(broca("journal", file, "--json").stdout)
    assert content["vectors"] == {"attribution": 5}
    assert content["counts"]["vectors"] == 5


def test_rows_are_exported(file, tmp_path):
    """`--export` writes a line for each row to a .csv file alone; the journal must exist."""
    table = tmp_path / "rows.csv"
    written = json.loads(broca("journal", file, "--export", table, "--json").stdout)
    assert written == {"rows": 12, "file": str(table)}
    assert len(table.read_text().splitlines()) == 1 + 12
    refused = broca("journal", file, "--export", tmp_path / "rows.txt")
    assert_refused(refused, "must end in .csv")
    assert_refused(broca("journal", tmp_path / "none.sqlite"), "does not exist")
