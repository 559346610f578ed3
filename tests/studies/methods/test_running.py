"""Cells are run once, in any number of calls, and repeat themselves."""

from dataclasses import replace

import pytest

from broca.errors import BadInput, UnknownName
from broca.studies.methods import Grid, cell_file, parse_methods, run_cell, run_grid
from broca.studies.methods import running as module

SMALL = Grid(("gradient", "thompson"), (48, 250), (0, 1), tasks=("rhyming",))


def test_a_kill_loses_nothing_that_was_finished(arena, tmp_path, monkeypatch):
    """Ended in the third cell, the same grid goes on with it and runs no cell twice."""
    ran = []

    def dying(arena, key):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(key)
        return run_cell(arena, key)

    with monkeypatch.context() as patch:
        patch.setattr(module, "run_cell", dying)
        with pytest.raises(KeyboardInterrupt):
            run_grid(arena, SMALL, cell_file(tmp_path))
    assert [cell.key for cell in cell_file(tmp_path).pieces] == ran
    assert run_grid(arena, SMALL, cell_file(tmp_path)) == 6
    file = cell_file(tmp_path)
    assert [cell.key for cell in file.pieces] == list(SMALL.keys(arena))
    assert run_grid(arena, SMALL, file) == 0


def test_budgets_that_a_method_refuses_are_recorded(arena):
    """With the method's own words; nothing is spent."""
    (key,) = Grid(("thompson",), (48,), (0,), tasks=("rhyming",)).keys(arena)
    cell = run_cell(arena, key)
    assert "--rows 48 is too few for thompson" in cell.refused
    assert (cell.rows, cell.selected, cell.intervals) == (0, (), None)


def test_same_seed_same_line(arena):
    """All but the seconds."""
    (key,) = Grid(("cs-fresh",), (200,), (4,), tasks=("addition",)).keys(arena)
    first, second = (replace(run_cell(arena, key), seconds=0.0) for _ in range(2))
    assert first.to_line() == second.to_line()
    assert first.response == "probability"
    assert first.rows <= 200
    assert len(first.intervals) == 96


def test_intervals_say_in_which_response_they_are_compared(arena):
    """Focus screens probabilities and settles in the task's metric; every head has an interval."""
    (key,) = Grid(("focus",), (300,), (0,), tasks=("addition",)).keys(arena)
    cell = run_cell(arena, key)
    assert cell.response == "accuracy"
    assert len(cell.intervals) == 96
    assert all(low < high for low, high in cell.intervals)


def test_methods_by_name():
    """`all` is every method; none and unknown ones are refused."""
    assert parse_methods("greedy, focus,greedy") == ("greedy", "focus")
    assert len(parse_methods("all")) > 10
    with pytest.raises(UnknownName, match="did you mean 'greedy'"):
        parse_methods("gredy")
    with pytest.raises(BadInput, match="--methods"):
        parse_methods(" , ")
