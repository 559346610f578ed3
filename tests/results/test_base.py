"""Every result has a short summary and becomes a table, a figure, a page and files."""

import re
import shutil
from dataclasses import replace

import pytest
from results import samples
from simulated import toy_verification

import broca
from broca.errors import BadInput
from broca.results.atlas import Atlas
from broca.results.base import ModelInfo, tables
from broca.results.checks import Check
from broca.results.localization import Localization
from broca.results.reading import KINDS, read
from broca.results.runs import Reproduction

# number of lines of each table, and its first columns
MAKERS = {
    samples.make_result: (6, "component layer head effect low high"),
    toy_verification: (5, "task role metric items before after drop"),
    samples.make_atlas: (6, "task capability component effect low high selected"),
    samples.make_stress: (6, "measure of value low high"),
    samples.make_neurons: (2, "component layer index score sigmas"),
    samples.make_erasure: (2, "method questions neurons before"),
    samples.make_refit: (6, "component layer head effect"),
    samples.make_estimate: (2, "method rows tokens seconds"),
    samples.make_export: (2, "component ablation scale"),
    samples.make_comparison: (8, "component model task effect low high difference"),
    samples.make_reproduction: (2, "model drop published"),
    samples.make_scan: (3, "component kind layer index"),
    samples.make_list: (3, "task origin"),
    samples.make_description: (1, "name tasks request_kind items"),
    samples.make_diagnosis: (2, "name state description remedy"),
    samples.make_contents: (2, "run task method seed"),
    samples.make_claim: (4, "component task"),
    samples.make_replication: (2, "respect task ablation seed items"),
}


def test_every_kind_is_tried_here_and_told_apart():
    """`MAKERS` has an example of every kind; kinds have different names and files."""
    assert {type(make()) for make in MAKERS} == set(KINDS)
    assert len({kind.kind for kind in KINDS}) == len(KINDS)
    files = [kind.FILE for kind in KINDS if kind is not Reproduction]
    assert len(set(files)) == len(files)
    assert all(files)


@pytest.mark.parametrize("make", MAKERS)
def test_text_table_and_picture_are_small(make):
    """The text has at most five lines, the table the documented columns, the picture no script."""
    result = make()
    rows, columns = MAKERS[make]
    assert 1 <= len(repr(result).splitlines()) <= 5
    frame = result.to_frame()
    assert len(frame) == rows
    assert f"{' '.join(frame.columns)} ".startswith(f"{columns} ")
    if make in samples.WITH_FIGURES:
        drawn = result.plot().svg()
        assert drawn.startswith("<svg")
        assert drawn.count("<rect") + drawn.count("<use") > 1
    else:
        with pytest.raises(BadInput, match="has no figure: use `to_frame"):
            result.plot()
    html = result._repr_html_()
    assert html.startswith("<div><p><b>")
    assert len(html) < 40_000
    assert not re.search(r"<script|<img|<link|@import|\b(?:src|href)\s*=\s*[\"'](?!#)", html)


@pytest.mark.parametrize("make", [*samples.WITH_PAGES, *samples.OTHERS])
def test_what_is_saved_is_read_again(make, tmp_path):
    """Every kind is read from its folder and from a file of any name; its pages are written.

    A folder with a localization and other results is read as the localization.
    """
    result = make()
    first, *pages = result.save(tmp_path / "new")
    assert read(tmp_path / "new") == broca.read(str(first)) == type(result).read(first) == result
    assert [page.name for page in pages] == [result.PAGE] * bool(result.PAGE)
    assert read(shutil.copy(first, tmp_path / "renamed.json")) == read(tmp_path) == result
    samples.make_result().save(tmp_path / "new")
    assert read(tmp_path / "new") == samples.make_result()


@pytest.mark.parametrize(
    ("result", "first"),
    [
        (samples.make_export(scale=0.5), "adapter of toy with L1H2, L0H0 at 0.5"),
        (samples.make_diagnosis("broken"), "broca cannot run here"),
        (samples.make_comparison(("a", "b", "c")), "1 component changed from a to later models"),
        (replace(samples.make_scan(), self_test=(Check("gates of zero", False, "0.5", 0.1),)),
         "self-test failed: gates of zero"),
    ],
)  # fmt: skip
def test_the_verdict_comes_first(result, first):
    """The text begins with the verdict, or with what else was found."""
    assert repr(result).startswith(first)


def test_a_notebook_escapes_text():
    """A model's name, which may come from a file, is escaped; of long tables the head is shown."""
    evil = "<script>alert('x')</script>"
    assert evil not in samples.make_result(model=ModelInfo(evil, "f"))._repr_html_()
    estimate = samples.make_estimate()
    assert replace(estimate, methods=estimate.methods * 10)._repr_html_().count("<tr") == 1 + 12


def test_lists_of_records_are_tables():
    """Nested values become dotted columns, inner records become tables, empty lists do not."""
    line = {
        "head": "L0H1", "drop": {"value": 0.5, "low": 0.4, "high": 0.6}, "numbers": [1.0, 2.0],
        "inner": [{"name": "x"}, {"name": "y"}],
    }  # fmt: skip
    by_name = tables({"lines": [line], "none": [], "within": {"lines": [line], "within": None}})
    assert list(by_name) == ["lines", "lines.inner", "within.lines", "within.lines.inner"]
    drop = {"drop.value": 0.5, "drop.low": 0.4, "drop.high": 0.6}
    expected = [{"head": "L0H1", **drop, "numbers": [1.0, 2.0]}]
    assert by_name["lines"] == by_name["within.lines"] == expected
    assert by_name["lines.inner"] == [{"lines.head": "L0H1", "name": name} for name in "xy"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"kind": "other"}', "\ufeff"])
def test_other_files_are_refused(text, tmp_path):
    """The message names the file, what to give, and the command that writes a missing result."""
    (tmp_path / "any.json").write_text(text, encoding="utf-8")
    (tmp_path / "atlas").mkdir()
    shutil.copy(samples.make_atlas().save(tmp_path / "atlas")[0], tmp_path / "atlas/result.json")
    for reader, place, message in (
        (read, "any.json", "is not a result of broca: give an out folder"),
        (read, "", r"holds no result of broca \(result\.json"),
        (read, "nowhere.json", "does not exist"),
        (Localization.read, "atlas", r"result\.json' is not a localization of broca"),
        (Atlas.read, "nowhere/atlas.json", r"atlas\.json' does not exist: run `broca atlas` first"),
    ):
        with pytest.raises(BadInput, match=message):
            reader(tmp_path / place)
