"""`broca journal` shows, examines, exports and prunes a journal."""

import json

import pytest
from cli.running import assert_refused, broca
from journals import filled, observed, of_version_1

from broca.journal import Journal


@pytest.fixture
def file(tmp_path):
    """A journal with a finished run that requested its vectors and none of its rows."""
    with Journal(tmp_path / "j.sqlite") as journal:
        run, *_ = filled(journal)
        observed(journal, run)
        journal.finish_run(run)
    return tmp_path / "j.sqlite"


def test_vectors_are_counted_by_kind(file):
    """The text and the JSON have the number of vectors of each kind."""
    shown = broca("journal", file)
    assert shown.returncode == 0, shown.stderr
    assert "12 rows" in shown.stdout
    assert "attribution: 5 vectors" in shown.stdout
    content = json.loads(broca("journal", file, "--json").stdout)
    assert content["vectors"] == {"attribution": 5}
    assert content["counts"]["vectors"] == 5


def test_json_stands_for_every_text(file, tmp_path):
    """With `--json`, the check and the export print JSON too."""
    checks = json.loads(broca("journal", file, "--check", "--json").stdout)["checks"]
    assert {check["wrong"] for check in checks} == {""}
    assert "vectors" in {check["name"] for check in checks}
    table = tmp_path / "rows.csv"
    written = json.loads(broca("journal", file, "--export", table, "--json").stdout)
    assert written == {"rows": 12, "file": str(table)}


def test_version_1_is_shown_and_examined_unchanged(tmp_path):
    """A journal of version 1 is shown, checked and exported without a change to its file."""
    path = of_version_1(tmp_path / "j.sqlite")
    before = path.read_bytes()
    assert "run 1: task by greedy, seed 0: 10 rows measured" in broca("journal", path).stdout
    examined = broca("journal", path, "--check")
    assert examined.returncode == 0
    assert "ok: vectors" in examined.stdout
    assert broca("journal", path, "--export", tmp_path / "rows.csv").returncode == 0
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 1 + 12
    assert path.read_bytes() == before


def test_prune_says_what_it_deleted(file):
    """`--prune` prints what it deleted; with `--forget`, the vectors of the run are deleted too."""
    size = file.stat().st_size
    pruned = broca("journal", file, "--prune")
    assert pruned.returncode == 0, pruned.stderr
    assert "deleted 12 rows, 0 vectors and 1 outputs" in pruned.stdout
    assert file.stat().st_size <= size
    pruned = broca("journal", file, "--prune", "--forget", 1, "--json")
    content = json.loads(pruned.stdout)
    assert (content["rows"], content["vectors"], content["outputs"]) == (0, 5, 0)
    assert "run" not in broca("journal", file).stdout


def test_what_cannot_be_pruned_is_refused(file, tmp_path):
    """A missing file is not made; `--forget` needs `--prune` and the number of a run."""
    assert_refused(broca("journal", tmp_path / "none.sqlite", "--prune"), "does not exist")
    assert not (tmp_path / "none.sqlite").exists()
    assert_refused(broca("journal", file, "--forget", 1), "add --prune")
    assert_refused(broca("journal", file, "--prune", "--forget", 9), "names run 9")


def test_an_export_of_another_kind_is_refused(file, tmp_path):
    """The name of an exported file must end in .csv or .parquet."""
    refused = broca("journal", file, "--export", tmp_path / "rows.txt")
    assert_refused(refused, "must end in .csv or .parquet")
