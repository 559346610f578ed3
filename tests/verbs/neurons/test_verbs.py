"""The neuron verbs on a shipped model: shared scores, own examples, unchanged weights."""

from pathlib import Path

from journals import totals
from verbs.neurons.small_runs import FEW, arguments_of

import broca
from broca import neurons
from broca.runs.workspace import Workspace


def test_verbs_share_scores_within_a_workspace(small):
    """`erase` reuses the scores of items that `locate` has scored."""
    with Workspace() as workspace:
        neurons.locate(small, **arguments_of("locate"), journal=workspace)
        located = totals(workspace.journal)["vectors"]
        neurons.erase(
            small,
            "sorting",
            others="",
            report_items=4,
            draws=1,
            sigma=3.0,
            journal=workspace,
            **FEW,
        )
        after = totals(workspace.journal)["vectors"]
    assert located == after == 6


def test_own_examples_are_a_task(small):
    """A task of pairs or choices is accepted, by default without other tasks."""
    pairs = [(f"{n} + {n} =", f" {2 * n}") for n in range(8)]
    choices = [{"prompt": f"{n} is", "choices": [" a", " b"], "label": n % 2} for n in range(8)]
    for examples in (pairs, choices):
        task = broca.Task.from_examples(examples, name="own")
        result = neurons.erase(small, task, report_items=4, draws=1, count=3, **FEW)
        assert [(part.questions, part.neurons) for part in result.result] == [("own", 3)]
        assert result.settings["others"] == []


def test_weights_are_as_before_afterwards(small):
    """After `enhance` the model's weights have the same fingerprint as before."""
    from broca.models.fingerprint import fingerprint

    before = fingerprint(small.model)
    neurons.enhance(small, **arguments_of("enhance"))
    assert fingerprint(small.model) == before


def test_trained_weights_lie_beside_the_journal(small, tmp_path):
    """A second run reads the files of trained weights instead of training again."""
    neurons.enhance(small, **arguments_of("enhance"), journal=tmp_path / "j.sqlite")
    files = sorted(Path(tmp_path / "deltas").iterdir())
    assert len(files) == 3
    times = [file.stat().st_mtime_ns for file in files]
    neurons.enhance(small, **arguments_of("enhance"), journal=tmp_path / "j.sqlite")
    assert [file.stat().st_mtime_ns for file in files] == times
