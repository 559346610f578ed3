"""`broca rerun`."""

from cli.running import broca
from verbs.run_folders import raise_largest_effect

from broca.models import loading


def test_rerun_from_the_journal_is_identical_and_loads_no_model(finished, monkeypatch):
    """The ranking comes out byte by byte; a changed result is told."""

    def refuse(*_, **__):
        raise SystemError("a model was loaded")

    monkeypatch.setattr(loading, "_loaded", refuse)
    done = broca("rerun", finished)
    assert (done.returncode, done.stdout) == (0, "identical\n"), done.stderr


def test_a_result_that_was_changed_does_not_come_out_again(finished):
    """Exit code 1, with the difference."""
    raise_largest_effect(finished)
    done = broca("rerun", finished)
    assert done.returncode == 1
    assert "same selection" in done.stdout
    assert "was not reproduced" in done.stderr
