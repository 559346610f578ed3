"""Repeated searches with other seeds, and budgets in minutes, which a speed turns into rows."""

import numpy as np
import pytest
from claims import claimed
from verbs.run_folders import localize_into

from broca import Run, Workspace, rerun
from broca.errors import BadInput
from broca.runs import speed
from broca.runs.speed import rows_within

ROWS = 150
"""Budget of a search."""

ARGUMENTS = {
    "model": "reference-small", "task": "capitals", "others": [], "method": "cs-fresh",
    "rows": ROWS, "items": 12, "report_items": 20, "verify": False,
}  # fmt: skip


@pytest.mark.long
def test_a_repeat_is_what_a_run_with_its_seed_finds(tmp_path):
    """A repeat equals a run with its seed, and the first search is unchanged."""
    repeated = localize_into(tmp_path / "three", seed=4, seeds=3, **ARGUMENTS)
    assert [repeat.seed for repeat in repeated.repeats] == [5, 6]
    for seed, searched in ((4, repeated), (5, repeated.repeats[0])):
        alone = localize_into(tmp_path / str(seed), seed=seed, **ARGUMENTS)
        assert alone.selected == searched.selected
        assert alone.repeats == ()
    assert alone.cost.rows == repeated.repeats[0].rows
    assert repeated.cost.rows <= 150


@pytest.mark.long
def test_a_time_is_turned_into_rows_once(tmp_path, monkeypatch):
    """A resumed or repeated run keeps its rows, whatever the speed of the machine is then."""
    arguments = {**ARGUMENTS, "rows": None, "max_minutes": 0.5}
    speeds = iter([120.0, 80.0])

    def timed(run, sample):
        return np.array([next(speeds), 0, sample, 1e5], dtype=np.float32)

    monkeypatch.setattr(speed, "_timed", timed)
    first = localize_into(tmp_path / "first", **arguments)
    assert 0 < first.cost.rows < ROWS
    again = localize_into(tmp_path / "first", **arguments)
    assert (again.selected, again.cost.rows) == (first.selected, first.cost.rows)
    other = localize_into(tmp_path / "other", **arguments)
    assert other.cost.rows < 0.8 * first.cost.rows
    assert rerun(tmp_path / "first", from_scratch=True).grade == "identical"


def test_too_little_time_is_refused(tmp_path, monkeypatch):
    """The message has the rows that the time allows, or the permitted values."""
    monkeypatch.setattr("broca.verbs.localize.rows_within", lambda *positional, **named: 3)
    arguments = {**ARGUMENTS, "method": "pooled", "rows": None}
    with pytest.raises(BadInput, match=r"0\.1 allow about 3 rows here.*needs 300: .* minutes"):
        localize_into(tmp_path, max_minutes=0.1, **arguments)
    with pytest.raises(BadInput, match="`max_minutes` must be above 0, not -1"):
        localize_into(tmp_path / "other", max_minutes=-1, **arguments)


def test_more_time_allows_more_rows(small):
    """The number of rows grows with the time, at the speed that the run measured once."""
    tasks = claimed(small, "capitals", others=["sorting"], items=12, seed=0, limit=12)
    with Workspace() as space:
        run = Run(small, tasks, space)
        few, many = (rows_within(run, time, tasks.places["locate"]) for time in (10.0, 1000.0))
    assert few > 100
    assert many == pytest.approx(100 * few, rel=0.01)
