"""The whole comparison in one call: files, summary, targets, and going on."""

import json

import pytest

from broca.errors import BadInput, UnknownName
from broca.studies.methods import Cell, compare_methods

FEW = {
    "methods": ["gradient", "thompson"],
    "tasks": ["capitals"],
    "others": ["capitals", "rhyming"],
    "budgets": (60, 200),
    "items": 15,
    "report_items": 40,
    "exhaustive": 4,
}


def test_files_summary_and_going_on(planted, tmp_path):
    """Lines for every method and budget; a second call measures nothing, `again` one method."""
    found = compare_methods([planted], **FEW, out=tmp_path)
    assert (found.ran, found.left_out) == (4, 0)
    by_name = {(line.method, line.budget): line for line in found.lines}
    assert set(by_name) == {(m, b) for m in FEW["methods"] for b in FEW["budgets"]}
    refused = by_name["thompson", 60]
    assert (refused.cells, refused.refused) == (0, 1)
    line = by_name["gradient", 60]
    assert 0 <= line.recall <= 1
    assert 0 <= line.coverage <= 1
    assert line.intervals == 96
    assert [target.letter for target in found.targets] == list("abcde")
    lines = (tmp_path / "methods.jsonl").read_text().splitlines()
    assert [Cell.from_line(one) for one in lines] == list(found.cells)
    assert {path.name for path in tmp_path.glob("exhaustive-*")} == {
        f"exhaustive-{planted.fingerprint[:12]}-capitals-{response}.json"
        for response in ("accuracy", "probability")
    }
    page = found.page.read_text()
    assert "Methods on planted" in page
    assert "NOT reached" in page or "not measured" in page
    assert "<script src=" not in page
    assert "Plotly.newPlot" in page
    assert compare_methods([planted], **FEW, out=tmp_path).ran == 0
    other = compare_methods([planted], **{**FEW, "items": 12}, out=tmp_path)
    assert (other.ran, other.left_out) == (4, 4)
    assert {cell.key.items for cell in other.cells} == {12}


def test_again_repeats_the_cells_that_the_call_names(planted, tmp_path):
    """Those of the method with these budgets; its other cells stay as they are."""
    few = {**FEW, "exhaustive": 0}
    compare_methods([planted], **few, out=tmp_path)
    before = (tmp_path / "methods.jsonl").read_text().splitlines()
    found = compare_methods(
        [planted], **{**few, "budgets": (60,)}, out=tmp_path, again=["gradient"]
    )
    assert found.ran == 1
    after = (tmp_path / "methods.jsonl").read_text().splitlines()
    assert len(set(before) & set(after)) >= 3
    assert len(after) == 4


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"methods": "gredy"}, UnknownName, "did you mean 'greedy'"),
        ({"k": 0}, BadInput, "--k must be at least 1"),
        ({"k": 97}, BadInput, "--k 97 is more than the 96 heads"),
        ({"exhaustive": -1}, BadInput, "--exhaustive"),
        ({"seeds": ()}, BadInput, "one seed"),
        ({"candidate": "focu"}, UnknownName, "did you mean 'focus'"),
        ({"again": ["greedy"]}, BadInput, "--again greedy is about no method of --methods"),
        ({"tasks": ","}, BadInput, "--tasks names no task"),
    ],
)
def test_bad_input_is_one_line(planted, tmp_path, changed, error, message):
    """Before anything is measured."""
    with pytest.raises(error, match=message):
        compare_methods([planted], **{**FEW, **changed}, out=tmp_path)
    assert not (tmp_path / "methods.jsonl").exists()


def test_a_foreign_file_is_left_alone(planted, tmp_path):
    """The folder of something else is refused and keeps what it has."""
    (tmp_path / "methods.jsonl").write_text(json.dumps({"mine": 1}) + "\n")
    with pytest.raises(BadInput, match="line 1"):
        compare_methods([planted], **FEW, out=tmp_path)
    assert json.loads((tmp_path / "methods.jsonl").read_text()) == {"mine": 1}
