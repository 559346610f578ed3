"""Files of finished work: nothing finished is lost, nothing is done twice."""

import pytest

from broca.bench.cells import Cell, cell_file
from broca.errors import BadInput


def test_what_is_appended_comes_back(tmp_path, make_cell):
    """Another reader of the folder finds the same pieces, in their order, and knows their keys."""
    file = cell_file(tmp_path)
    cells = [make_cell(seed=seed, selected=("L0H1",), drop=0.5) for seed in (2, 0, 1)]
    for cell in cells:
        assert cell.key not in file
        file.append(cell)
    again = cell_file(tmp_path)
    assert list(again.pieces) == cells
    assert all(cell.key in again for cell in cells)


def test_files_can_be_joined(tmp_path, make_cell):
    """Lines of several runs in one file: each key counts once, as it was last measured."""
    file = cell_file(tmp_path)
    for drop, seed in ((0.1, 0), (0.2, 1), (0.3, 0)):
        file.append(make_cell(seed=seed, drop=drop))
    for known in (file, cell_file(tmp_path)):
        assert {cell.key.seed: cell.drop for cell in known.pieces} == {0: 0.3, 1: 0.2}


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_dropped_and_the_rest_kept(tmp_path, make_cell, cut):
    """A kill in the middle of a line loses that line alone, and the next one starts afresh."""
    file = cell_file(tmp_path)
    for seed in range(3):
        file.append(make_cell(seed=seed))
    file.path.write_text(file.path.read_text()[:-cut])
    torn = cell_file(tmp_path)
    assert [cell.key.seed for cell in torn.pieces] == [0, 1]
    torn.append(make_cell(seed=9))
    assert [cell.key.seed for cell in cell_file(tmp_path).pieces] == [0, 1, 9]


def test_forgotten_pieces_are_gone_from_the_file(tmp_path, make_cell):
    """The others stay."""
    file = cell_file(tmp_path)
    for method in ("greedy", "focus", "coar"):
        file.append(make_cell(method=method))
    assert file.forget(lambda cell: cell.key.method == "focus") == 1
    assert file.forget(lambda cell: cell.key.method == "focus") == 0
    assert [cell.key.method for cell in cell_file(tmp_path).pieces] == ["greedy", "coar"]


@pytest.mark.parametrize("line", ["{}", "no json", '{"key": 3, "intervals": null}', "[]"])
def test_a_foreign_line_is_refused_by_its_number(tmp_path, make_cell, line):
    """One line that says where, and nothing is changed."""
    file = cell_file(tmp_path)
    file.append(make_cell())
    with file.path.open("a") as handle:
        handle.write(line + "\n")
    before = file.path.read_text()
    with pytest.raises(BadInput, match=r"line 2 of .*methods\.jsonl"):
        cell_file(tmp_path)
    assert file.path.read_text() == before


def test_a_cell_of_wrong_types_is_no_cell(make_cell):
    """A text where a number belongs is found when it is read."""
    line = make_cell(rows=300).to_line().replace('"rows": 300', '"rows": "300"')
    with pytest.raises(ValueError, match="rows"):
        Cell.from_line(line)
