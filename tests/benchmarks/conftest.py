"""Fixtures that import the scripts of `benchmarks/` and make cells for them."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="session")
def script():
    """Returns a function that imports a script by its name."""
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))


@pytest.fixture
def make_cell(script):
    """Returns a function that makes a cell from fields of the key and of the cell."""
    comparison = script("comparison")

    def make(task="addition", method="greedy", budget=None, seed=0, *, model="m", **fields):
        key = comparison.CellKey(model, task, ("others",), 100, 120, 120, method, budget, seed, 5)
        return comparison.Cell(key, model, task, **fields)

    return make
