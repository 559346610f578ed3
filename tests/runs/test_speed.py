"""The speed of a run is measured once."""

import pytest
from journals import totals

import broca
from broca.runs.run import Run
from broca.runs.speed import rows_within, speed_of
from broca.runs.task_sets import claim_tasks, load_tasks
from broca.runs.workspace import Workspace
from broca.tasks import Catalog


def test_a_run_is_timed_once(tmp_path):
    """More time allows more rows; another process has the speed that the journal keeps."""
    catalog = Catalog()
    model = broca.load("reference-small", device="cpu")
    benchmarks = load_tasks(model, ["capitals", "sorting"], catalog)
    tasks = claim_tasks("capitals", benchmarks, items=12, seed=0, limit=12)
    with Workspace(tmp_path / "rows.sqlite") as space:
        run = Run(model, tasks, space, settings={"test": "timing"})
        places = tasks.places["locate"]
        rows = rows_within(run, 10.0, places)
        assert rows > 100
        assert rows_within(run, 1000.0, places) == pytest.approx(100 * rows, rel=0.01)
        timing = speed_of(run, sample=32)
        assert set(timing.tokens_per_second) == {"accuracy", "probability"}
        before = totals(space.journal)
    with Workspace(tmp_path / "rows.sqlite") as space:
        again = Run(model, tasks, space, settings={"test": "timing"})
        assert speed_of(again, sample=32) == timing
        assert totals(space.journal) == before
        other = Run(model, tasks, space, settings={"test": "another run"})
        assert speed_of(other, sample=32) != timing
