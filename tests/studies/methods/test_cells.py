"""Cells and budgets as text."""

import pytest

from broca.errors import BadInput
from broca.studies.methods.cells import Cell, budget_name, parse_budgets


def test_a_line_holds_everything(make_cell):
    """Intervals that are missing stay missing, and the default budget stays the default."""
    cell = make_cell(
        selected=("L0H1", "L2H3"), drop=0.25, intervals=((-0.5, -0.25), None), rows=7, seconds=0.5
    )
    assert Cell.from_line(cell.to_line()) == cell
    assert Cell.from_line(cell.to_line()).key.budget is None


def test_a_cell_of_wrong_types_is_no_cell(make_cell):
    """A text where a number belongs is found when it is read; so is a line of something else."""
    line = make_cell(rows=300).to_line().replace('"rows": 300', '"rows": "300"')
    with pytest.raises(ValueError, match="rows"):
        Cell.from_line(line)
    for other in ("{}", '{"key": 3, "intervals": null}', "[]"):
        with pytest.raises(ValueError, match=r"Expected|missing"):
            Cell.from_line(other)


def test_a_refusal_is_no_abstention(make_cell):
    """A method that did not run said nothing about the task."""
    assert make_cell(reason="nothing harms").abstained
    refused = make_cell(refused="too few rows")
    assert not refused.abstained
    assert not refused.done


def test_budgets_are_numbers_or_default():
    """In the order given, none twice."""
    assert parse_budgets("400, default,100,400") == (400, None, 100)
    assert [budget_name(one) for one in (12800, None)] == ["12,800", "default"]


@pytest.mark.parametrize("text", ["", "ten", "-5", "0", "1.5", "100,none"])
def test_other_budgets_are_refused(text):
    """The message names the option."""
    with pytest.raises(BadInput, match="--budgets"):
        parse_budgets(text)
