"""One bar: the rows of a run, and the time that is left at the speed measured."""

import pytest

from broca.engine import Progress
from broca.runs.progress import Stages


def test_rows_add_up_to_those_that_are_expected():
    """Known rows take no time, rows with gradients cost more, and tokens add up over the run."""
    reports, now = [], [0.0]
    stages = Stages(lambda _, progress: reports.append(progress), clock=lambda: now[0])
    stages.expect(100)
    stages.enter("intact")
    assert reports == [None]
    with stages.planned(40):
        stages.at(20, 20, 40)  # half of the plan is in the journal
        assert reports[-1] == Progress(20, 100, 0, None)
        now[0] = 5.0
        stages.within(Progress(10, 20, 3))
        assert reports[-1] == Progress(30, 100, 3, pytest.approx(35.0))
        now[0] = 10.0
        stages.within(Progress(20, 20, 6))
    stages.enter("searching")
    with stages.planned(10):  # the whole plan is in the journal, so that no chunk begins
        pass
    with stages.planned(10, cost=30):  # with gradients
        stages.at(0, 10, 10)
        now[0] = 25.0
        stages.within(Progress(5, 10, 3))
        assert reports[-1] == Progress(65, 100, 9, pytest.approx(25.9, rel=0.01))
    with stages.planned(60):  # more than expected
        stages.at(0, 60, 60)
        assert (reports[-1].done, reports[-1].total) == (80, 140)


def test_a_verb_within_a_verb_counts_its_rows():
    """The rows of the inner verb are rows of the run; its stages are not reported."""
    reports, now = [], [0.0]
    stages = Stages(lambda *reported: reports.append(reported), clock=lambda: now[0])
    stages.expect(180)
    report = stages.within_verb("localizing")
    report("searching", None)
    now[0] = 2.0
    report("searching", Progress(20, 80, 5))
    assert reports == [
        ("localizing", None), ("localizing", Progress(20, 180, 0, pytest.approx(16.0))),
    ]  # fmt: skip


def test_notes_are_no_stages():
    """The stage continues after a note."""
    reports = []
    stages = Stages(lambda name, progress: reports.append((name, progress)))
    stages.enter("scoring")
    stages.note("a task is near chance")
    stages.at(0, 1, 1)
    assert [name for name, _ in reports] == ["scoring", "note: a task is near chance", "scoring"]
