"""`broca.rerun` repeats a finished run, from its journal or from scratch, and compares."""

import json
from itertools import combinations
from pathlib import Path
from shutil import copytree

import pytest
from journals import totals
from verbs.run_folders import assert_no_model_is_loaded, localize_into, raise_largest_effect

from broca import Repetition, rerun
from broca.errors import BadInput, NotInJournal
from broca.options import AtlasOptions
from broca.runs.folder import RunFolder
from broca.store import Journal

SMALL = {
    "model": "reference-small", "task": "capitals", "method": "cs-stratified", "rows": 200,
    "items": 8, "limit": 40, "verify": False,
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
    before = totals(RunFolder.read(finished).journal)
    assert rerun(finished) == Repetition("identical")
    assert totals(RunFolder.read(finished).journal) == before


def test_from_scratch_gives_the_same_result(finished, tmp_path):
    """A run repeated from scratch is identical; its rows go to a journal, but not the run's own."""
    journal = tmp_path / "again.sqlite"
    assert rerun(finished, from_scratch=True, journal=journal) == Repetition("identical")
    assert totals(journal)["batches"] > 0
    (tmp_path / "link").symlink_to(finished)
    for folder in (finished, tmp_path / "link"):
        with pytest.raises(BadInput, match=r"`journal` .* holds the rows of this run"):
            rerun(finished, from_scratch=True, journal=folder / "journal.sqlite")


def test_the_executor_of_a_repetition_is_the_runs_or_named(copied, monkeypatch):
    """A repetition has the executor and the engine that `reproduce.json` records or a call names.

    From the journal alone, naming one is refused.
    """
    used = []

    def refuse(*, settings, **_):
        used.append(settings.run_options.executor_options.executor)
        assert settings.run_options.engine_options.token_budget == 64
        raise BadInput("no workers here")

    monkeypatch.setattr("broca.verbs.localize.localize", refuse)
    file = copied / "reproduce.json"
    record = json.loads(file.read_text())
    for recorded, given in (("local", {}), ("ray", {}), ("local", {"executor": "ray"})):
        record["options"]["run_options"]["executor_options"]["executor"] = recorded
        record["options"]["run_options"]["engine_options"]["token_budget"] = 64
        file.write_text(json.dumps(record))
        with pytest.raises(BadInput, match="no workers here"):
            rerun(copied, from_scratch=True, **given)
    assert used == ["local", "ray", "ray"]
    with pytest.raises(BadInput, match="the journal alone is read"):
        rerun(copied, token_budget=64)


def test_a_file_of_examples_has_the_name_that_the_run_gave_it(tmp_path, monkeypatch):
    """Its name decides how it is cut, and the record has its path; elsewhere it is not found."""
    monkeypatch.chdir(tmp_path)
    pairs = [f"{a} {b}" for a, b in combinations("abcdefgh", 2)]
    lines = ({"prompt": f"sort {pair[::-1]} =", "answer": f" {pair}"} for pair in pairs)
    Path("own.jsonl").write_text("\n".join(map(json.dumps, lines)))
    localize_into(tmp_path / "out", **{**SMALL, "task": "own.jsonl"})
    assert rerun("out", from_scratch=True) == Repetition("identical")
    monkeypatch.chdir("/")
    with pytest.raises(BadInput, match=r"task file 'own\.jsonl' cannot be read"):
        rerun(tmp_path / "out", from_scratch=True)


@pytest.mark.long
def test_no_model_is_loaded(finished):
    """Repeating a run from its journal does not import torch."""
    assert_no_model_is_loaded(f"assert broca.rerun({str(finished)!r}).passed")


def test_a_changed_result_does_not_come_out_again(copied):
    """A result changed by hand is not repeated, and the details state the difference."""
    raise_largest_effect(copied)
    for from_scratch in (False, True):
        repetition = rerun(copied, from_scratch=from_scratch)
        assert repetition.grade == "different"
        assert not repetition.passed
        assert "the largest difference of effects is 0.0099" in repetition.details[0]


def test_other_folders_are_refused(finished, copied, tmp_path):
    """A folder without a run, of another verb, or without a recorded search is refused."""
    with pytest.raises(BadInput, match=r"holds no reproduce\.json"):
        rerun(tmp_path)
    with Journal(copied / "journal.sqlite") as journal:
        journal.note_search(1, {})
    with pytest.raises(NotInJournal, match="ended before its search began"):
        rerun(copied)
    RunFolder.claim(copied, verb="atlas", options=AtlasOptions("a"), command=[""], fresh=True)
    with pytest.raises(BadInput, match="holds no run of `broca localize`"):
        rerun(copied)
