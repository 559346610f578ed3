"""How far a run is."""

from broca.engine import Progress
from broca.runs.progress import Stages, titled


def test_progress_counts_the_plan():
    """Chunks add up; a new plan begins at nothing; every report names the stage."""
    seen = []
    stages = Stages(lambda name, progress: seen.append((name, progress)))
    stages.enter("searching")
    stages.at(0, 50, 100)
    stages.within(Progress(20, 40, 7))
    stages.at(50, 50, 100)
    stages.within(Progress(40, 40, 3))
    stages.at(0, 10, 10)
    stages.within(Progress(1, 2, 4))
    assert seen == [
        ("searching", None),
        ("searching", Progress(0, 100, 0)),
        ("searching", Progress(25, 100, 7)),
        ("searching", Progress(50, 100, 7)),
        ("searching", Progress(100, 100, 10)),
        ("searching", Progress(0, 10, 0)),
        ("searching", Progress(5, 10, 4)),
    ]


def test_a_run_without_a_listener_is_silent(capsys):
    """Nobody has to listen."""
    stages = Stages()
    stages.enter("searching")
    stages.within(Progress(1, 2, 4))
    assert capsys.readouterr() == ("", "")


def test_a_title_stands_for_the_stages_of_a_verb():
    """What a verb within another is at is told by how far it is alone."""
    seen = []
    stages = Stages(titled(lambda name, progress: seen.append((name, progress)), "cell 1 of 2"))
    stages.enter("searching")
    stages.at(0, 10, 10)
    stages.within(Progress(1, 2, 4))
    assert seen == [("cell 1 of 2", Progress(done, 10, 4 * (done > 0))) for done in (0, 5)]
