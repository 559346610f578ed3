"""What a notebook shows of a result: small, self-contained, and safe with any text."""

import re

import pytest
from reports.test_page import make_result
from results.test_base import MAKERS, make_estimate

from broca.reports import picture
from broca.results.base import ModelInfo


@pytest.mark.parametrize("make", MAKERS)
def test_picture_is_small_and_needs_nothing(make):
    """No script, no address; the first line of the result comes first."""
    result = make()
    html = result._repr_html_()
    assert html == picture(result)
    assert len(html) < 20_000
    assert not re.search(r"<script|<img|<link|https?:", html)
    assert html.startswith("<div><p><b>")


def test_heads_are_a_grid():
    """A row for each layer, a cell for each head; harm is red, what is selected is framed."""
    html = picture(make_result())
    assert html.count("<tr>") == 2
    assert html.count("<td ") == 6
    assert html.count("outline:") == 2
    cell = re.search(r'title="L1H2 -0\.4200" style="[^"]*rgb\((\d+),(\d+),(\d+)\)', html)
    assert [int(part) for part in cell.groups()] == [180, 35, 24]
    assert 'title="L0H1 +0.0000"' in html


def test_other_results_are_tables():
    """The first lines, with the number of the others."""
    html = picture(make_estimate())
    assert html.count("<tr>") == 3
    assert "<td>one-shot</td>" in html
    methods = make_estimate().methods * 10
    assert "and 8 more" in picture(
        type(make_estimate())(**{**vars(make_estimate()), "methods": methods})
    )


def test_text_is_escaped():
    """Names of models come from files."""
    evil = "<script>alert('x')</script>"
    assert evil not in picture(make_result(model=ModelInfo(evil, "f")))
