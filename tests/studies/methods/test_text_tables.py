"""Summaries as rows of text."""

import pytest

from broca.studies.methods import summarize
from broca.studies.methods.text_tables import COLUMNS, OPTIONAL, columns, markdown, texts_of


@pytest.fixture
def lines(make_cell):
    """Summaries of a method with two runs and one refusal, and of one that always refused."""
    return summarize(
        [
            make_cell(method="greedy", selected=("A",), drop=0.5, off_target=0.1, rows=1200),
            make_cell(method="greedy", seed=1, drop=0.0, off_target=0.0, rows=800),
            make_cell(method="greedy", seed=2, refused="too few"),
            make_cell(method="coar", refused="too few"),
        ]
    )


def test_a_line_shows_its_means_under_their_columns(lines):
    """A row shows the method's means; a value that no method has gets no column."""
    greedy = next(line for line in lines if line.method == "greedy")
    shown = dict(zip(columns(lines), texts_of(greedy, lines), strict=True))
    assert tuple(shown) == COLUMNS
    assert shown["specific drop (90 %)"].startswith("0.200 (")
    assert (shown["drop"], shown["off-target"]) == ("0.250", "0.050")
    assert (shown["none found"], shown["rows"]) == ("1", "1,000")
    assert shown["cells"] == "2 (+1 refused)"


def test_a_method_that_refused_says_so(lines):
    """A method that always refused has a full row that says "refused" and counts its cells."""
    coar = next(line for line in lines if line.method == "coar")
    shown = dict(zip(columns(lines), texts_of(coar, lines), strict=True))
    assert shown["specific drop (90 %)"] == "refused"
    assert shown["cells"] == "0 (+1 refused)"


def test_columns_that_any_line_knows_are_shown_for_all(lines):
    """An optional column appears if one method has the value, and is empty for the others."""
    from dataclasses import replace

    recalled = [replace(lines[0], recall=0.75), *lines[1:]]
    assert columns(recalled) == (*COLUMNS, next(n for n, f in OPTIONAL.items() if f == "recall"))
    assert texts_of(recalled[0], recalled)[-1] == "0.75"
    assert texts_of(recalled[1], recalled)[-1] == ""


def test_markdown_has_a_line_for_each_row():
    """The table has a header, a rule and a line for each row."""
    assert markdown(("a", "b"), [("1", "2"), ("3", "4")]) == (
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n"
    )
