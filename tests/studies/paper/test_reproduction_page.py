"""The page of a reproduction is self-contained and escapes text."""

import re

from broca.studies.paper.reproduction_page import cell, render_page

from broca.studies.paper import NAMES, Reproduction


def test_one_page_holds_all_and_needs_nothing_from_outside(everything):
    """The page has a section for each name and loads nothing from outside."""
    page = render_page(list(everything.values()))
    assert page.startswith("<!doctype html>")
    assert [f'id="{name}"' in page for name in NAMES] == [True] * len(NAMES)
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", page)
    assert len(page.encode()) < 1_000_000
    assert "scores 0.000 on gsm8k" in page


def test_the_page_states_its_settings(everything):
    """The page states the method, k, and the numbers of items."""
    page = " ".join(render_page(list(everything.values())).split())
    assert "Lists by cs-stratified, k 3, up to 6 items to search on, up to 12 report items" in page


def test_columns_without_anything_are_left_out_and_words_stand_on_the_left():
    """Columns without a value are left out; only text cells have the class `text`."""
    settings = {"method": "m", "k": 5, "items": 1, "limit": 9, "seed": 0, "keep_universal": False}
    rows = (
        {"model": "m", "heads": "", "drop": 0.0, "published": "", "shared": None},
        {"model": "m", "heads": "L0H1", "drop": 0.25, "published": "", "shared": None},
    )
    page = render_page([Reproduction("table9", ("m",), rows, settings)])
    table = " ".join(page[page.index("<table>") : page.index("</table>")].split())
    assert '<td class="text">L0H1</td><td data-v="0.25">0.250</td>' in table
    assert "published" not in table
    assert "shared" not in table


def test_a_table_without_rows_says_so():
    """A table without rows says "Nothing to show." and gives the reason."""
    settings = {"method": "m", "k": 5, "items": 1, "limit": 9, "seed": 0, "keep_universal": False}
    page = render_page([Reproduction("table3", ("m",), (), settings, ("no two tasks",))])
    assert "Nothing to show." in page
    assert "no two tasks" in page


def test_text_is_escaped():
    """Names of models and tasks are escaped."""
    bad = "<script>alert(1)</script>"
    settings = {"method": "m", "k": 5, "items": 1, "limit": None, "seed": 0, "keep_universal": True}
    row = {"model": bad, "task": bad, "drop": 0.5, "drop_low": 0.4, "drop_high": 0.6}
    page = render_page([Reproduction("table2", (bad,), (row,), settings, (bad,))])
    assert bad not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_cells_are_short():
    """Numbers have three decimals or thousands separators, and None is an empty cell."""
    assert [cell(value) for value in (0.12345, 1220864, "L0H1", None)] == [
        "0.123", "1,220,864", "L0H1", "",
    ]  # fmt: skip
