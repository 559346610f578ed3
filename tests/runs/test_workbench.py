"""What the workbench tells."""

from broca.runs.workbench import Stage

from broca.engine import Progress


def test_progress_is_told_with_its_stage():
    """The first one, then each that is entered; entering alone tells nothing."""
    told = []
    stage = Stage(lambda name, progress: told.append((name, progress)), "scoring")
    first, second = Progress(1, 4, 10), Progress(4, 4, 40)
    stage.tell(first)
    stage.enter("searching")
    assert told == [("scoring", first)]
    stage.tell(second)
    assert told == [("scoring", first), ("searching", second)]
