"""A model opened by its neurons: settings, task names and the folder of trained weights."""

import pytest

from broca.errors import BadInput
from broca.neurons.opening import opened
from broca.options import (
    DataOptions,
    JournalOptions,
    ModelOptions,
    ProgressOptions,
    RuleOptions,
    RunOptions,
    TaskOptions,
)


def opening(*, journal=None, stages=None, **settings):
    """Opens the shipped model `reference-small` by its neurons."""
    report = None if stages is None else lambda stage, _: stages.append(stage)
    options = RunOptions(
        task_options=TaskOptions(limit=40),
        model_options=ModelOptions(device="cpu"),
        journal_options=JournalOptions(journal=journal),
        progress_options=ProgressOptions(on_progress=report),
    )
    groups = (RuleOptions(steps=3), DataOptions(items=5, seed=2))
    return opened("reference-small", options, *groups, **settings)


def test_components_are_neurons_whatever_the_options_say():
    """The components are neurons, and the settings contain what identifies the run."""
    with opening() as session:
        assert session.neurons.model.kinds == "neurons"
        assert (session.settings["steps"], session.settings["seed"]) == (3, 2)
        assert session.deltas is None


def test_trained_weights_lie_beside_the_journal(tmp_path):
    """Trained weights are stored in the folder `deltas` next to the journal."""
    with opening(journal=tmp_path / "j.sqlite") as session:
        assert session.deltas == tmp_path / "deltas"


def test_names_become_settings():
    """Task names become settings; a task given among its own `others` is refused."""
    with opening() as session:
        assert session.names("sorting", "capitals") == ("sorting", ("capitals",))
        assert session.settings["others"] == ["capitals"]
        assert session.names("", ["sorting", "capitals"])[1] == ("sorting", "capitals")
        assert session.settings["tasks"] == ["sorting", "capitals"]
        for others in ("capitals,sorting", ["capitals", "sorting"]):
            with pytest.raises(BadInput, match="a task is not a control of itself"):
                session.names("sorting", others)


def test_a_run_is_identified_by_its_verb_and_its_settings():
    """A run's settings are its verb and the session's settings, and its stages are reported."""
    stages = []
    with opening(stages=stages) as session:
        run = session.run("locate", {"locate": ["sorting"]})
        assert len(run.places("sorting")) == 5
        assert run.run.settings == {"verb": "neurons locate", **session.settings}
    assert "building the tasks" in stages
