"""`broca.rerun` repeats a finished run, from its journal or from scratch, and compares."""

import json
from shutil import copytree

import pytest
from verbs.run_folders import assert_no_model_is_loaded, localize_into, raise_largest_effect

from broca.errors import BadInput, NotInJournal
from broca.journal import Journal
from broca.results.repetition import Repetition
from broca.runs.folder import RunFolder
from broca.verbs.rerun import rerun

SMALL = {
    "model": "reference-small", "task": "capitals", "method": "cs-stratified", "rows": 200,
    "items": 8, "task_options": {"limit": 40}, "verify": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a small run."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    localize_into(folder, **SMALL)
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the finished run that a test may change."""
    return copytree(finished, tmp_path / "copy")


def test_the_journal_gives_the_same_ranking(finished):
    """A run repeated from its journal is identical, and the journal is not written."""
    with Journal(RunFolder.read(finished).journal, read_only=True) as journal:
        before = journal.query("SELECT count(*), max(id) FROM batches")
    assert rerun(finished) == Repetition("identical")
    assert rerun(finished).passed
    with Journal(RunFolder.read(finished).journal, read_only=True) as journal:
        assert journal.query("SELECT count(*), max(id) FROM batches") == before


def test_from_scratch_gives_the_same_result(finished):
    """A run repeated from scratch is identical and reports its stages."""
    stages = []
    repetition = rerun(
        finished, from_scratch=True, on_progress=lambda stage, progress: stages.append(stage)
    )
    assert repetition == Repetition("identical")
    assert stages[:2] == ["looking up the task", "loading the model"]
    assert "searching (cs-stratified)" in stages


def test_no_model_is_loaded(finished):
    """Repeating a run from its journal does not import torch."""
    assert_no_model_is_loaded(f"assert broca.rerun({str(finished)!r}).passed")


def test_a_changed_result_does_not_come_out_again(copied):
    """A result changed by hand is not repeated, and the details state the difference."""
    raise_largest_effect(copied)
    for from_scratch in (False, True):
        repetition = rerun(copied, from_scratch=from_scratch)
        assert repetition.grade == "same selection"
        assert not repetition.passed
        assert "the largest difference of effects is 0.0099" in repetition.details[0]


def test_other_folders_are_refused(finished, copied, tmp_path):
    """A folder without a run, of another verb, or without a recorded search is refused."""
    with pytest.raises(BadInput, match=r"holds no reproduce\.json"):
        rerun(tmp_path)
    record = json.loads((copied / "reproduce.json").read_text())
    with Journal(copied / "journal.sqlite") as journal:
        journal.note_search(1, {})
    with pytest.raises(NotInJournal, match="ended before its search began"):
        rerun(copied)
    record["asked"]["verb"] = "atlas"
    (copied / "reproduce.json").write_text(json.dumps(record))
    with pytest.raises(BadInput, match="holds no run of `broca localize`"):
        rerun(copied)
