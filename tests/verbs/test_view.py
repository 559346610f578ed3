"""`broca.view` lists every result below some folders with its page."""

import json
import re
from dataclasses import replace

import pytest
from results.samples import make_atlas, make_result

import broca
from broca.errors import BadInput
from broca.results.files import encode


def test_every_result_is_a_line_with_its_page(tmp_path, monkeypatch):
    """Results are found at any depth, and links are relative to the index."""
    monkeypatch.chdir(tmp_path)
    make_result().save(tmp_path / "runs" / "one")
    make_result().verification.save(tmp_path / "runs" / "one")
    make_atlas().save(tmp_path / "runs" / "deep" / "two")
    path = broca.view(["runs"], out=tmp_path / "index")
    html = path.read_text()
    assert "<h1>3 results</h1>" in html
    for name, page in (("runs/one", "report.html"), ("runs/deep/two", "atlas.html")):
        assert f'<a href="../{name}/{page}">{name}</a>' in html
    assert html.count('<a href="../runs/one/report.html">') == 2  # of the run and its verification
    data = json.loads(re.search(r'id="comparable">(.*?)</script>', html, re.DOTALL).group(1))
    first = next(run for run in data if run["name"] == "runs/one")
    assert first["selected"] == ["L1H2", "L0H0"]
    assert first["scores"]["adding"] == [0.975, 0.015]


def test_unreadable_files_are_noted_and_names_quoted(tmp_path):
    """An unreadable result is named, and the others are listed.

    Names that are not parts of an address, or not UTF-8, are quoted in links.
    """
    make_result().save(tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / "javascript:alert(1)#?\udcff")
    (tmp_path / "atlas.json").write_text("{}")
    edited = make_result(verification=replace(make_result().verification, drops=()))
    (tmp_path / "result.json").write_text(encode(edited))
    html = broca.view(tmp_path, out=tmp_path).read_text()
    assert "<h1>1 result</h1>" in html
    assert '<a href="javascript%3Aalert%281%29%23%3F%FF/report.html">' in html
    assert "atlas.json" in html
    assert "a localization cannot be shown" in html


def test_nothing_to_list_is_refused(tmp_path):
    """A folder without a result and a path that is not a folder are refused."""
    with pytest.raises(BadInput, match="holds no result of broca"):
        broca.view(tmp_path, out=tmp_path)
    with pytest.raises(BadInput, match="is not a folder"):
        broca.view(tmp_path / "nowhere", out=tmp_path)
