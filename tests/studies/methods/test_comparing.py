"""One call of the comparison: files, summaries, page and resumption."""

import json

import pytest

import broca
from broca.engine import Engine
from broca.errors import BadInput, UnknownName
from broca.studies.methods import compare_methods

FEW = {
    "methods": ["gradient", "thompson"],
    "tasks": ["capitals"],
    "others": ["capitals", "rhyming"],
    "budgets": (60, 200),
    "items": 15,
    "report_items": 40,
    "exhaustive": 4,
    "limit": 60,
    "candidate": "gradient",
}


def untimed(cell):
    """Returns a cell's fields with the seconds set to 0."""
    return {**vars(cell), "seconds": 0}


def test_files_summary_and_going_on(planted, tmp_path, monkeypatch):
    """Every method and budget has a summary; a second call runs no finished cell again."""
    comparison = broca.compare_methods([planted], **FEW, out=tmp_path)
    assert (comparison.ran, comparison.left_out) == (4, 0)
    by_name = {(line.method, line.budget): line for line in comparison.summaries}
    assert set(by_name) == {(m, b) for m in FEW["methods"] for b in FEW["budgets"]}
    refused = by_name["thompson", 60]
    assert (refused.cells, refused.refused) == (0, 1)
    line = by_name["gradient", 60]
    assert 0 <= line.recall <= 1
    assert 0 <= line.coverage <= 1
    assert 0 <= line.top <= 1
    assert line.intervals == 96
    assert {path.name for path in tmp_path.iterdir()} == {
        "cells", "journal.sqlite", "journal.sqlite.lock", "methods.html",
    }  # fmt: skip
    page = comparison.page.read_text()
    assert "Methods on planted" in page
    assert "<script src=" not in page
    assert page.index("<svg") < page.index("<table>")
    measured = []
    run = Engine.run
    monkeypatch.setattr(
        Engine, "run", lambda *arguments, **named: measured.append(1) or run(*arguments, **named)
    )
    assert compare_methods(planted, **FEW, out=tmp_path).ran == 0
    for path in (tmp_path / "cells").iterdir():
        path.unlink()
    again = compare_methods(planted, **FEW, out=tmp_path)
    assert again.ran == 4
    assert not measured  # the journal has every row and every intact answer
    assert [untimed(cell) for cell in again.cells] == [untimed(c) for c in comparison.cells]
    other = compare_methods(planted, **{**FEW, "items": 12}, out=tmp_path)
    assert (other.ran, other.left_out) == (4, 4)
    assert {cell.key.items for cell in other.cells} == {12}


def test_again_repeats_the_cells_that_the_call_names(planted, tmp_path):
    """`again` repeats the method's cells at the named budgets and leaves its other cells."""
    settings = {**FEW, "exhaustive": 0}
    compare_methods([planted], **settings, out=tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    comparison = compare_methods(
        [planted], **{**settings, "budgets": (60,)}, out=tmp_path, again="gradient"
    )
    assert comparison.ran == 1
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    assert set(after) == set(before)
    (repeated,) = (name for name in after if after[name] != before[name])
    assert repeated.startswith("gradient-capitals-60-")


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"methods": "gredy"}, UnknownName, "did you mean 'greedy'"),
        ({"k": 0}, BadInput, "`k` must be at least 1"),
        ({"k": 97}, BadInput, "`k` 97 is more than the 96 heads"),
        ({"report_items": 0}, BadInput, "`report_items` must be at least 1"),
        ({"exhaustive": -1}, BadInput, "`exhaustive`"),
        ({"seeds": ()}, BadInput, "one seed"),
        ({"candidate": "focu"}, UnknownName, "did you mean 'focus'"),
        ({"again": ["greedy"]}, BadInput, "`again` greedy is not in `methods`"),
        ({"tasks": ","}, BadInput, "`tasks` names no task"),
    ],
)
def test_bad_input_is_one_line(planted, tmp_path, changed, error, message):
    """Bad input is refused before any cell is run."""
    with pytest.raises(error, match=message):
        compare_methods([planted], **{**FEW, **changed}, out=tmp_path)
    assert not (tmp_path / "cells").exists()


def test_a_foreign_file_is_left_alone(planted, tmp_path):
    """A folder with a file that is not a cell is refused and left unchanged."""
    path = tmp_path / "cells" / "mine.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mine": 1}))
    with pytest.raises(BadInput, match=r"mine\.json' is not a cell"):
        compare_methods([planted], **FEW, out=tmp_path)
    assert json.loads(path.read_text()) == {"mine": 1}
    assert not (tmp_path / "journal.sqlite").exists()
