"""Progress of a run, from its plans and from its expected steps."""

import pytest
from broca.runs.forecast import Step

from broca.engine import Progress
from broca.runs.progress import Stages


def test_progress_counts_the_plan():
    """Without steps, chunks add up, a new plan starts at zero, and tokens add up over the run."""
    reports = []
    stages = Stages(lambda name, progress: reports.append((name, progress)))
    stages.enter("searching")
    stages.begin(100)
    stages.at(0, 50, 100)
    stages.within(Progress(20, 40, 7))
    stages.at(50, 50, 100)
    stages.within(Progress(40, 40, 3))
    stages.end()
    stages.begin(10)
    stages.at(0, 10, 10)
    stages.within(Progress(1, 2, 4))
    assert reports == [
        ("searching", None),
        ("searching", Progress(0, 100, 0)),
        ("searching", Progress(25, 100, 7)),
        ("searching", Progress(50, 100, 7)),
        ("searching", Progress(100, 100, 10)),
        ("searching", Progress(0, 10, 10)),
        ("searching", Progress(5, 10, 14)),
    ]


def test_progress_counts_the_run_where_its_steps_are_known():
    """With steps there is one total; known rows have no speed; rows with gradients cost more."""
    reports, now = [], [0.0]
    stages = Stages(lambda _, progress: reports.append(progress), clock=lambda: now[0])
    stages.expect([Step("intact", 40), Step("searching", 60, "search")])
    stages.enter("intact")
    stages.begin(40)
    stages.at(20, 20, 40)  # half of the plan is in the journal
    assert reports[-1] == Progress(20, 100, 0, None, guessed=True)
    now[0] = 5.0
    stages.within(Progress(10, 20, 3))
    assert reports[-1] == Progress(30, 100, 3, 35.0, guessed=True)
    now[0] = 10.0
    stages.end()
    stages.enter("searching")
    stages.begin(10)  # the whole plan is in the journal, so that no chunk begins
    stages.end()
    stages.begin(10, cost=30)  # with gradients
    stages.at(0, 10, 10)
    now[0] = 16.0
    stages.within(Progress(5, 10, 3))
    assert reports[-1] == Progress(65, 100, 6, pytest.approx(14.0), guessed=False)
    now[0] = 22.0
    stages.end()
    stages.begin(0)
    stages.at(0, 0, 0)
    assert (reports[-1].done, reports[-1].total) == (80, 100)


def test_the_parts_of_a_plan_count_once():
    """A plan is counted once although its parts are scored from outputs and from the journal."""
    reports = []
    stages = Stages(lambda _, progress: reports.append(progress), clock=lambda: 0.0)
    stages.expect([Step("intact", 50)])
    stages.enter("intact")
    stages.begin(50)
    stages.at(0, 20, 20)
    stages.at(10, 20, 30)
    stages.end()
    stages.enter("another")
    stages.at(0, 0, 0)
    assert (reports[-1].done, reports[-1].total) == (50, 50)


def test_notes_are_no_stages():
    """The stage continues after a note."""
    reports = []
    stages = Stages(lambda name, progress: reports.append((name, progress)))
    stages.enter("scoring")
    stages.note("a task is near chance")
    stages.at(0, 1, 1)
    assert [name for name, _ in reports] == ["scoring", "note: a task is near chance", "scoring"]


def test_a_run_without_a_listener_is_silent(capsys):
    """A run without a listener prints nothing."""
    stages = Stages()
    stages.enter("searching")
    stages.within(Progress(1, 2, 4))
    assert capsys.readouterr() == ("", "")


def test_the_verb_of_a_step_tells_of_the_whole_run():
    """The verb's rows replace the expected rows of its step, and its stages are not reported."""
    reports, now = [], [0.0]
    stages = Stages(lambda *reported: reports.append(reported), clock=lambda: now[0])
    stages.expect(
        [Step("cell 1", 100, "focus", verb=True), Step("cell 2", 100, "focus", verb=True)]
    )
    report = stages.enter_verb("cell 1")
    report("searching", None)
    now[0] = 2.0
    report("searching", Progress(20, 80, 5, 6.0))
    assert reports == [("cell 1", None), ("cell 1", Progress(20, 180, 5, pytest.approx(16.0)))]


def test_the_verb_of_a_run_without_steps_tells_of_itself():
    """Without steps, the verb's own progress is reported."""
    reports = []
    stages = Stages(lambda *reported: reports.append(reported))
    stages.enter_verb("atlas")("searching", Progress(20, 80, 5, 6.0))
    assert reports[-1] == ("atlas", Progress(20, 80, 5, 6.0))
