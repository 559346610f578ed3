"""A notebook shows a small, self-contained picture of a result, safe with any text."""

import re

import pytest
from results.samples import make_result
from results.samples import MAKERS, make_estimate

from broca.results.base import ModelInfo
from broca.results.pages import picture
from broca.results.pages.colours import LIGHT


@pytest.mark.parametrize("make", MAKERS)
def test_picture_is_small_and_needs_nothing(make):
    """The picture has no script and no address, and starts with the result's first line."""
    result = make()
    html = result._repr_html_()
    assert html == picture(result)
    assert len(html) < 20_000
    assert not re.search(r"<script|<img|<link|@import|\b(?:src|href)\s*=", html)
    assert html.startswith("<div><p><b>")


def test_heads_are_a_grid():
    """Each head is a cell; harm is orange, and selected heads are framed."""
    html = picture(make_result())
    assert html.count("data-component=") == 6
    cell = re.search(r'data-component="L1H2"[^/]*fill="(#\w+)"', html)
    assert cell.group(1) == LIGHT["harm"]
    frames = [part for part in html.split("<rect")[1:] if 'stroke-width="2.4"' in part]
    assert len(frames) == 2


def test_other_results_are_tables():
    """A table shows the first lines and the number of the others."""
    html = picture(make_estimate())
    assert html.count("<tr>") == 3
    assert "<td>one-shot</td>" in html
    methods = make_estimate().methods * 10
    assert "and 8 more" in picture(
        type(make_estimate())(**{**vars(make_estimate()), "methods": methods})
    )


def test_text_is_escaped():
    """A model's name, which may come from a file, is escaped."""
    evil = "<script>alert('x')</script>"
    assert evil not in picture(make_result(model=ModelInfo(evil, "f")))
