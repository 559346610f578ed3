"""Fixtures of the comparison of methods."""

import pytest
from broca.runs.setup import open_session

from broca.options import RunOptions, TaskOptions
from broca.runs.task_sets import load_tasks, whole_tasks
from broca.runs.workspace import Workspace
from broca.studies.methods import Cell, CellKey
from broca.studies.methods.running import CellSetup

TASKS = ("rhyming", "addition", "addition_words")
FEW = TaskOptions(limit=60)


@pytest.fixture(scope="session")
def workspace():
    """A journal in memory for all cells of a test session."""
    with Workspace() as opened:
        yield opened


@pytest.fixture(scope="session")
def setup(reference, workspace):
    """Three tasks of 60 documents each on `reference`."""
    options = RunOptions(task_options=FEW).within(workspace)
    with open_session(reference, options) as opened:
        benchmarks = load_tasks(reference, TASKS, opened.catalog, options=FEW)
        yield CellSetup(opened, benchmarks, {})


@pytest.fixture(scope="session")
def whole_run(setup):
    """A run on all items of the three tasks."""
    return setup.session.run(whole_tasks(setup.benchmarks))


@pytest.fixture
def make_cell():
    """A function that makes a cell from fields of the key and fields of the cell."""

    def make(task="addition", method="greedy", budget=None, seed=0, *, model="m", **fields):
        key = CellKey(model, task, ("others",), 100, 300, 0, method, budget, seed, 5)
        return Cell(key, model, fields.pop("capability", task), **fields)

    return make
