"""Rows are equal for all models; changes are against the same item on the intact model."""

import numpy as np
import pytest

from broca.comparisons.measuring import draw_design, measure
from broca.measurement import Plan
from broca.options import TaskOptions
from broca.runs.run import Run
from broca.runs.task_sets import load_tasks, split_tasks
from broca.runs.workspace import Workspace
from broca.tasks import Catalog


@pytest.fixture(scope="module")
def run(reference):
    """A run on a few items of two tasks."""
    benchmarks = load_tasks(
        reference, ["addition", "sorting"], Catalog(), options=TaskOptions(limit=60)
    )
    with Workspace(None) as space:
        tasks = split_tasks(benchmarks, items=20, seed=0, limit=30)
        yield Run(reference, tasks, space, settings={"test": "comparison"})


@pytest.fixture(scope="module")
def design(run):
    """The rows of the run."""
    return draw_design(run, rows=60, seed=3, response="accuracy", places=run.tasks.places["locate"])


def test_items_are_asked_alike_and_masks_vary_in_size(run, design):
    """Masks vary in size, items occur equally often, and equal seeds draw equal rows."""
    assert design.masks.shape == (60, 96)
    sizes = design.masks.sum(axis=1)
    assert len(set(sizes.tolist())) > 2
    assert np.median(sizes) == pytest.approx(design.size, abs=max(2, design.size))
    for name, items in design.items.items():
        count = len(run.tasks.places["locate"][name])
        assert np.ptp(np.bincount(items, minlength=count)) <= 1
    again = draw_design(
        run, rows=60, seed=3, response="accuracy", places=run.tasks.places["locate"]
    )
    assert np.array_equal(again.masks, design.masks)
    assert all(np.array_equal(again.items[name], design.items[name]) for name in design.items)


def test_changes_and_report_answers_are_those_of_plain_runs(run, design):
    """Every row equals the engine's accuracy under the same mask."""
    measured = measure(
        run, design, [["L0H1", "L1H2"]], response="accuracy", places=run.tasks.places["locate"]
    )
    positions = run.tasks.places["locate"]["addition"]
    for row in (0, 7, 41):
        place = positions[design.items["addition"][row]]
        benchmark, item = run.bank[place]
        columns = np.flatnonzero(design.masks[row]).tolist()
        values = []
        for ablated in (columns, []):
            plan = Plan.crossed(run.mask(ablated)[None], np.array([place]))
            (outputs,) = run.answers(plan)
            values.append(benchmark.score(item, outputs))
        assert measured.changes["addition"][row] == values[0] - values[1]
    columns = run.model.components.columns("L0H1+L1H2")
    for name, rows in measured.reported.items():
        assert rows.shape == (2, 30)
        assert measured.trial.score(name, rows[0]) == run.scores(())[name]
        assert measured.trial.score(name, rows[1]) == run.scores(columns)[name]
    assert measured.info.fingerprint == run.model.fingerprint
    assert measured.at_chance == ()
