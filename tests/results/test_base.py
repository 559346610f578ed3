"""Every result has a short summary and becomes a table, a figure, a page and files."""

import re
import shutil
import sys
from dataclasses import dataclass

import pytest
from results.samples import (
    make_atlas,
    make_comparison,
    make_contents,
    make_description,
    make_diagnosis,
    make_estimate,
    make_experiment,
    make_export,
    make_list,
    make_neurons,
    make_refit,
    make_reproduction,
    make_result,
    make_scan,
    make_stress,
)
from simulated import toy_verification

import broca
from broca.errors import BadInput
from broca.results.base import Interval, ModelInfo, framed, joined_names, tables
from broca.results.localization import Localization
from broca.results.neurons import NeuronExperiment
from broca.results.reading import KINDS, read
from broca.results.runs import Reproduction

# number of lines of each table, and its first columns
MAKERS = {
    make_result: (6, ["component", "layer", "head", "effect", "low", "high"]),
    toy_verification: (5, ["task", "role", "metric", "items", "before", "after", "drop"]),
    make_atlas: (6, ["task", "capability", "component", "effect", "low", "high", "selected"]),
    make_stress: (6, ["measure", "of", "value", "low", "high"]),
    make_neurons: (2, ["component", "layer", "index", "score", "sigmas"]),
    make_experiment: (2, ["method", "questions", "neurons", "before"]),
    make_refit: (6, ["component", "layer", "head", "effect"]),
    make_estimate: (2, ["method", "rows", "tokens", "seconds"]),
    make_export: (2, ["component", "ablation", "scale"]),
    make_comparison: (8, ["component", "model", "task", "effect", "low", "high", "difference"]),
    make_reproduction: (2, ["model", "drop", "published"]),
    make_scan: (3, ["component", "kind", "layer", "index"]),
    make_list: (3, ["task", "origin"]),
    make_description: (1, ["name", "tasks", "request_kind", "items"]),
    make_diagnosis: (2, ["name", "state", "description", "remedy"]),
    make_contents: (2, ["run", "task", "method", "seed"]),
}
WITHOUT_FIGURE = (
    make_experiment, make_estimate, make_export, make_reproduction, make_scan, make_list,
    make_description, make_diagnosis, make_contents,
)  # fmt: skip


def test_every_kind_is_tried_here_and_told_apart():
    """`MAKERS` has an example of every kind; kinds have different names and files."""
    assert {type(make()) for make in MAKERS} == set(KINDS)
    assert len({kind.kind for kind in KINDS}) == len(KINDS)
    files = [kind.FILE for kind in KINDS if kind not in (NeuronExperiment, Reproduction)]
    assert len(set(files)) == len(files)
    assert all(files)


@pytest.mark.parametrize("make", MAKERS)
def test_text_table_and_picture_are_small(make):
    """The text has at most five lines, the table the documented columns, the picture no script."""
    result = make()
    rows, columns = MAKERS[make]
    assert 1 <= len(repr(result).splitlines()) <= 5
    frame = result.to_frame()
    assert (len(frame), list(frame.columns)[: len(columns)]) == (rows, columns)
    if make in WITHOUT_FIGURE:
        with pytest.raises(BadInput, match="has no figure: use `to_frame"):
            result.plot()
    else:
        drawn = result.plot().svg()
        assert drawn.startswith("<svg")
        assert drawn.count("<rect") + drawn.count("<use") > 1
    html = result._repr_html_()
    assert html.startswith("<div><p><b>")
    assert len(html) < 40_000
    assert not re.search(r"<script|<img|<link|@import|\b(?:src|href)\s*=\s*[\"'](?!#)", html)


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_saved_is_read_again(make, tmp_path):
    """Every kind is read from its folder and from a file of any name; its pages are written."""
    result = make()
    first, *pages = result.save(tmp_path / "new")
    assert read(tmp_path / "new") == broca.read(str(first)) == type(result).read(first) == result
    experiment_page = [f"{first.stem}.html"] if make is make_experiment else []
    assert [page.name for page in pages] == ([result.PAGE] if result.PAGE else experiment_page)
    renamed = shutil.copy(first, tmp_path / "renamed.json")
    assert read(renamed) == read(tmp_path) == result


@pytest.mark.parametrize("make", MAKERS)
def test_the_frame_of_polars_has_the_same_cells(make):
    """Columns, rows and values of all tables equal those of pandas, and unknown values are null."""
    pytest.importorskip("polars", reason="polars is not installed")
    result = make()
    frame = result.to_frame("polars")
    assert frame.to_dicts() == result.records()
    assert list(frame.columns) == list(result.to_frame().columns)
    for name in result.tables:
        assert result.to_frame("polars", table=name).height == len(result.to_frame(table=name)) > 0


def test_other_frames_are_refused(monkeypatch):
    """An unknown library or table is refused, and so is polars if it is not installed."""
    with pytest.raises(BadInput, match="`library` 'arrow' is unknown: use pandas or polars"):
        make_refit().to_frame("arrow")
    with pytest.raises(BadInput, match="has no table 'control'; did you mean 'controls'"):
        toy_verification().to_frame(table="control")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(BadInput, match="polars is not installed"):
        make_refit().to_frame("polars")


def test_the_verdict_comes_first():
    """The text starts with the verdict, or else with the drop or the reason for no selection."""
    verification = toy_verification()
    text = f"{verification.verdict.label}: {verification.verdict.text}"
    assert repr(verification).startswith(text)
    result = make_result(verification=verification)
    assert result.verdict is verification.verdict
    assert repr(result).startswith(text)
    assert repr(make_result()).startswith("not verified: adding loses 96.0 points, 95.0 of them")
    abstained = make_result(selected=(), abstained=True, reason="no harm")
    assert repr(abstained).startswith("nothing selected: no harm")
    assert abstained.verdict is None
    assert repr(make_stress()).startswith("transfers: it does")


def test_selected_components_are_marked_in_the_frame():
    """Selected components have True in the column `selected`; intervals have two columns."""
    frame = make_result().to_frame().set_index("component")
    assert list(frame.index[frame["selected"]]) == ["L1H2", "L0H0"]
    assert (frame.loc["L0H0", "low"], frame.loc["L0H0", "high"]) == (-0.2, -0.02)
    assert make_atlas().to_frame().query("selected")["component"].tolist() == ["L0H0"]


def test_a_notebook_escapes_text():
    """A model's name, which may come from a file, is escaped; of long tables the head is shown."""
    evil = "<script>alert('x')</script>"
    assert evil not in make_result(model=ModelInfo(evil, "f"))._repr_html_()
    estimate = make_estimate()
    many = type(estimate)(**{**vars(estimate), "methods": estimate.methods * 10})
    assert many._repr_html_().count("<tr") == 1 + 12


def test_long_lists_are_cut():
    """The text ends with the number of names that are left out."""
    assert joined_names(("a", "b")) == "a, b"
    assert joined_names(tuple("abcd"), most=2) == "a, b and 2 more"


@dataclass(frozen=True)
class Line:
    """A record with nested values and inner records."""

    head: str
    drop: Interval
    shares: dict[str, float]
    numbers: tuple[float, ...]
    inner: tuple[dict[str, str], ...]


def test_lists_of_records_are_tables():
    """Nested values become dotted columns, inner records become tables, empty lists do not."""
    inner = ({"name": "x"}, {"name": "y"})
    lines = (Line("L0H1", Interval(0.5, 0.4, 0.6), {"a": 1.0}, (1.0, 2.0), inner),)
    by_name = tables({"lines": lines, "none": (), "within": {"lines": lines, "within": None}})
    assert list(by_name) == ["lines", "lines.inner", "within.lines", "within.lines.inner"]
    assert framed(by_name["lines"]) == [
        {"head": "L0H1", "drop.value": 0.5, "drop.low": 0.4, "drop.high": 0.6, "shares.a": 1.0,
         "numbers": [1.0, 2.0]}
    ]  # fmt: skip
    assert by_name["lines.inner"] == [
        {"lines.head": "L0H1", "name": "x"}, {"lines.head": "L0H1", "name": "y"},
    ]  # fmt: skip
    assert by_name["within.lines"] == by_name["lines"]


def test_a_verification_has_all_its_tables_as_frames():
    """The tables have the numbers of the result."""
    result = toy_verification()
    assert set(result.tables) >= {
        "drops", "controls", "controls.sets", "members", "members.changes", "curve.points",
        "failures", "samples",
    }  # fmt: skip
    members = result.to_frame(table="members").set_index("head")
    assert members.loc["L0H0", "alone.value"] == result.members[0].alone.value
    assert set(result.to_frame(table="controls.sets")["controls.kind"]) == {"layers", "norm"}


def test_a_run_is_read_as_its_localization(tmp_path):
    """A folder of a run is read as its localization; other files are read by their path."""
    make_result().save(tmp_path)
    make_stress().save(tmp_path)
    assert read(tmp_path) == make_result()
    assert read(tmp_path / "stress.json") == make_stress()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"kind": "other"}', "\ufeff"])
def test_other_files_are_refused(text, tmp_path):
    """The message says what to give."""
    (tmp_path / "any.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match="is not a result of broca: give an out folder"):
        read(tmp_path / "any.json")
    with pytest.raises(BadInput, match=r"holds no result of broca \(result\.json"):
        read(tmp_path)
    with pytest.raises(BadInput, match="does not exist"):
        read(tmp_path / "nowhere.json")


def test_a_file_of_another_kind_is_refused(tmp_path):
    """The message names the file, the expected kind, or the command that writes it."""
    file = make_atlas().save(tmp_path)[0]
    shutil.copy(file, tmp_path / "result.json")
    with pytest.raises(BadInput, match=r"result\.json' is not a localization of broca"):
        Localization.read(tmp_path)
    for make in (make_atlas, make_result, toy_verification):
        kind = type(make())
        with pytest.raises(BadInput, match=f"{kind.FILE}' does not exist: run `{kind.VERB}` first"):
            kind.read(tmp_path / "nowhere" / kind.FILE)
