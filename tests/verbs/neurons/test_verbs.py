"""The neuron verbs on a shipped model: what they return, and that they go on after a kill."""

import json
from pathlib import Path

import pytest
from verbs.neurons.small_runs import FEW, RUNS, asked

import broca
from broca import neurons
from broca.errors import BadInput
from broca.journal import Journal
from broca.journal.checking import check
from broca.results.codec import encode
from broca.runs.workspace import Workspace


@pytest.fixture(scope="module")
def small():
    """The shipped model `reference-small` with its neurons."""
    return broca.load("reference-small", device="cpu", components="neurons")


def totals(path):
    """Rows and vectors in a journal, and those that its batches say were measured."""
    with Journal(path, read_only=True) as journal:
        assert all(checked.passed for checked in check(journal))
        ((rows,),) = journal.query("SELECT count(*) FROM rows")
        ((vectors,),) = journal.query("SELECT count(*) FROM vectors")
        ((measured,),) = journal.query("SELECT coalesce(sum(rows), 0) FROM batches")
    return rows + vectors, measured


@pytest.mark.parametrize("verb", RUNS)
def test_a_finished_run_comes_again_from_the_journal(small, tmp_path, verb):
    """Every verb: the same result to the last digit, nothing measured twice; it can be saved."""
    journal = tmp_path / "j.sqlite"
    first = getattr(neurons, verb)(small, **asked(verb), journal=journal)
    before = totals(journal)
    assert before[0] == before[1] > 0
    again = getattr(neurons, verb)(small, **asked(verb), journal=journal)
    assert encode(again) == encode(first)
    assert totals(journal) == before
    name = "neurons.json" if verb == "locate" else f"{verb}.json"
    files = first.save(tmp_path)
    assert files[0].name == name
    data = json.loads(files[0].read_text())
    assert data["settings"]["steps"] == 4
    if verb == "locate":
        assert [neuron["name"] for neuron in data["selected"]]
        assert all(isinstance(neuron["score"], float) for neuron in data["selected"])


def test_verbs_share_scores_within_a_workspace(small):
    """Erasing what was located on the same items scores none of them anew."""
    with Workspace() as workspace:
        neurons.locate(small, **asked("locate"), journal=workspace)
        ((located,),) = workspace.journal.query("SELECT count(*) FROM vectors")
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
        ((after,),) = workspace.journal.query("SELECT count(*) FROM vectors")
    assert located == after == 6


def test_examples_of_ones_own_are_a_task(small):
    """Pairs and choices; by default there are no other tasks."""
    pairs = [(f"{n} + {n} =", f" {2 * n}") for n in range(8)]
    choices = [{"prompt": f"{n} is", "choices": [" a", " b"], "label": n % 2} for n in range(8)]
    for examples in (pairs, choices):
        task = broca.Task.from_examples(examples, name="own")
        result = neurons.erase(small, task, report_items=4, draws=1, count=3, **FEW)
        assert [(part.questions, part.neurons) for part in result.result] == [("own", 3)]
        assert result.settings["others"] == []


def test_weights_are_as_before_afterwards(small):
    """Training verbs put everything back: the fingerprint taken anew is the same."""
    from broca.models.fingerprint import fingerprint

    before = fingerprint(small.model)
    neurons.enhance(small, **asked("enhance"))
    assert fingerprint(small.model) == before


def test_trained_weights_lie_beside_the_journal(small, tmp_path):
    """A resumed run does not train again: it reads the file of the same training."""
    neurons.enhance(small, **asked("enhance"), journal=tmp_path / "j.sqlite")
    files = sorted(Path(tmp_path / "deltas").iterdir())
    assert len(files) == 3
    times = [file.stat().st_mtime_ns for file in files]
    neurons.enhance(small, **asked("enhance"), journal=tmp_path / "j.sqlite")
    assert [file.stat().st_mtime_ns for file in files] == times


@pytest.mark.parametrize(
    ("verb", "wrong", "message"),
    [
        ("locate", {"task": "capitals", "scope": "head"}, "`scope`"),
        ("locate", {"task": "capitals", "method": "cln"}, "did you mean 'cnl'"),
        ("locate", {"task": "capitals", "search": "greedyy"}, "'greedy'"),
        ("locate", {"task": "data:none", "fields": "x"}, "`fields`"),
        ("reliability", {"task": "capitals", "factors": "a"}, "`factors`"),
        ("reliability", {"task": "capitals", "draws": 0}, "`draws`"),
        ("fidelity", {"task": "sorting"}, "no paraphrases"),
        ("overlap", {"tasks": ""}, "`tasks`"),
        ("cross", {"tasks": "capitals"}, "two data sets"),
        ("cross", {"action": "freeze"}, "`action`"),
        ("enhance", {"task": "capitals", "lr": 0}, "`lr`"),
        ("enhance", {"task": "capitals", "without": "x"}, "`without`"),
        ("decouple", {"pairs": "nowhere.jsonl"}, "`pairs`"),
        ("erase", {"task": "capitals", "methods": "x"}, "`method` 'x'"),
        ("erase", {"task": "capitals", "matching": "x"}, "`matching`"),
    ],
)
def test_bad_input_is_one_line(small, verb, wrong, message):
    """What, why, and what to do, in words of parameters."""
    with pytest.raises(BadInput, match=message) as error:
        getattr(neurons, verb)(small, **wrong)
    assert "\n" not in str(error.value)
    assert "--" not in str(error.value)
