"""Cells of the comparison in files, and budgets as text."""

from dataclasses import replace

import pytest

from broca.errors import BadInput
from broca.studies.methods.cells import budget_name, method_cells, parse_budgets


def test_a_file_holds_everything(make_cell, tmp_path):
    """A cell that is read equals the cell that was added, with unset fields left at None."""
    cell = make_cell(
        selected=("L0H1", "L2H3"), drop=0.25, off_target=0.125, top=0.5, rows=7, seconds=0.5
    )
    cells = method_cells(tmp_path)
    assert cell.key not in cells
    cells.add(cell)
    assert cell.key in cells
    assert cells.read() == [cell]
    assert cells.read()[0].key.budget is None
    assert cells.read()[0].recall is None
    assert cell.specific == 0.125


def test_cells_of_other_keys_have_other_files(make_cell, tmp_path):
    """Cells that differ in any field of the key are kept apart, also for long task names."""
    cell = make_cell("group/task of a very long name" * 8)
    others = [
        replace(cell, key=replace(cell.key, **change))
        for change in (
            {"seed": 1}, {"k": 4}, {"items": 9}, {"report_items": 9}, {"exhaustive": 9},
            {"others": ()}, {"fingerprint": "n"}, {"task_options": {"limit": 60}},
        )
    ]  # fmt: skip
    cells = method_cells(tmp_path)
    for added in (cell, *others):
        cells.add(added)
    assert len(cells.read()) == 9
    cells.remove([cell.key, make_cell(seed=7).key])
    assert cell.key not in cells
    assert all(other.key in cells for other in others)


@pytest.mark.parametrize(
    "text", ["{}", "[]", "no JSON", '{"key": 3}', '{"rows": "300"}', "[" * 100_000]
)
def test_another_file_is_refused_and_left_alone(make_cell, tmp_path, text):
    """A file that is not a cell, or has wrong types, is refused in one line and kept unchanged."""
    cells = method_cells(tmp_path)
    cells.add(make_cell(rows=300))
    (path,) = (tmp_path / "cells").iterdir()
    if text == '{"rows": "300"}':
        text = path.read_text().replace('"rows": 300', '"rows": "300"')
    path.write_text(text)
    with pytest.raises(BadInput, match="is not a cell of this broca"):
        cells.read()
    assert path.read_text() == text


def test_a_refusal_is_no_abstention(make_cell):
    """A cell without a selection counts as abstained; a cell that refused does not."""
    assert make_cell(reason="nothing harms").abstained
    refused = make_cell(refused="too few rows")
    assert not refused.abstained
    assert not refused.done


def test_budgets_are_numbers_or_default():
    """Budgets keep their order without repetition; `default` is None."""
    assert parse_budgets("400, default,100,400") == (400, None, 100)
    assert [budget_name(budget) for budget in (12800, None)] == ["12,800", "default"]


@pytest.mark.parametrize("text", ["", "ten", "-5", "0", "1.5", "100,none"])
def test_other_budgets_are_refused(text):
    """Budgets other than positive integers and `default` are refused, naming `budgets`."""
    with pytest.raises(BadInput, match="`budgets`"):
        parse_budgets(text)
