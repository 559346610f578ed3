"""What several runs share."""

import pytest

from broca.errors import BadInput
from broca.options import ExecutorOptions, JournalOptions, SourceOptions
from broca.runs.setup import open_workspace
from broca.runs.workspace import Workspace


def test_a_workspace_of_the_caller_stays_open():
    """A call that is given one neither opens nor closes a journal."""
    with Workspace() as shared:
        with open_workspace(JournalOptions(journal=shared), ExecutorOptions()) as used:
            assert used is shared
            journal = used.journal
        assert shared.journal is journal
        assert journal.query("SELECT count(*) FROM rows") == [(0,)]


def test_a_workspace_of_one_call_is_closed_with_it(tmp_path):
    """Another one may write to the same file at once."""
    path = tmp_path / "j.sqlite"
    for _ in range(2):
        with open_workspace(JournalOptions(journal=path), ExecutorOptions()) as used:
            assert not used.in_memory
            assert used.journal.name == str(path)


def test_without_a_file_nothing_can_be_resumed():
    """The workspace says so."""
    assert Workspace().in_memory


def test_an_executor_belongs_to_the_workspace():
    """A call that shares one cannot name another place to measure."""
    with (
        Workspace() as shared,
        pytest.raises(BadInput, match="`executor`"),
        open_workspace(JournalOptions(journal=shared), ExecutorOptions(executor="ray")),
    ):
        pass


def test_tasks_of_one_source_have_one_catalog(tmp_path):
    """A task that several runs ask is built once."""
    shared = Workspace()
    assert shared.catalog(SourceOptions()) is shared.catalog(SourceOptions())
    assert shared.catalog(SourceOptions()) is not shared.catalog(SourceOptions(allow_code=True))


def test_a_share_that_cannot_be_is_refused():
    """Before anything is opened."""
    with pytest.raises(BadInput, match="`keep_outputs` must lie between 0 and 1"):
        Workspace(keep_outputs=1.5)
