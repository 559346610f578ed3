"""`broca rerun` repeats a finished run and compares the results."""

from cli.running import broca
from verbs.run_folders import raise_largest_effect

from broca.models import loading


def test_rerun_from_the_journal_is_identical_and_loads_no_model(finished, monkeypatch):
    """A rerun prints `identical` and gives exit code 0 without loading a model."""

    def refuse(*_, **__):
        raise SystemError("a model was loaded")

    monkeypatch.setattr(loading, "_loaded", refuse)
    done = broca("rerun", finished)
    assert (done.returncode, done.stdout) == (0, "identical\n"), done.stderr


def test_a_result_that_was_changed_is_not_reproduced(finished):
    """A changed result gives exit code 1, and the output says what still agrees."""
    raise_largest_effect(finished)
    done = broca("rerun", finished)
    assert done.returncode == 1
    assert "same selection" in done.stdout
    assert "was not reproduced" in done.stderr
