"""Fixtures of the comparison of methods."""

import pytest

from broca.studies.methods import Arena, Cell, CellKey
from broca.tasks import TaskOptions


@pytest.fixture(scope="session")
def arena(reference):
    """Two tasks of 60 documents each on `reference`."""
    return Arena.build(
        reference,
        tasks=["rhyming", "addition"],
        others=["rhyming", "addition", "addition_words"],
        items=15,
        report_items=1000,
        task_options=TaskOptions(limit=60),
    )


@pytest.fixture
def make_cell():
    """Makes a cell; the key's fields and the cell's are given by name."""

    def make(task="addition", method="greedy", budget=None, seed=0, *, model="m", **fields):
        key = CellKey(model, task, ("others",), 100, 300, method, budget, seed, 5)
        return Cell(key, model, fields.pop("capability", task), **fields)

    return make
