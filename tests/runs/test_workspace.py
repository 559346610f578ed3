"""Workspaces are shared by several runs."""

import pytest
from journals import totals

from broca.errors import BadInput
from broca.options import ExecutorOptions, JournalOptions, SourceOptions
from broca.runs.session import open_workspace
from broca.runs.workspace import Workspace


def test_a_workspace_of_the_caller_stays_open():
    """A call with an open workspace neither opens nor closes a journal."""
    with Workspace() as shared:
        with open_workspace(JournalOptions(journal=shared), ExecutorOptions()) as used:
            assert used is shared
            journal = used.journal
        assert shared.journal is journal
        assert totals(journal)["rows"] == 0


def test_a_workspace_of_one_call_is_closed_with_it(tmp_path):
    """The journal is closed after the call, so that the next call may open the same file."""
    path = tmp_path / "j.sqlite"
    for _ in range(2):
        with open_workspace(JournalOptions(journal=path), ExecutorOptions()) as used:
            assert not used.in_memory
            assert used.journal.name == str(path)


def test_an_executor_belongs_to_the_workspace():
    """A call with an open workspace cannot set another executor."""
    with (
        Workspace() as shared,
        pytest.raises(BadInput, match="`executor`"),
        open_workspace(JournalOptions(journal=shared), ExecutorOptions(executor="ray")),
    ):
        pass


def test_tasks_of_one_source_have_one_catalog(tmp_path):
    """Sources with equal options share a catalog, so that their tasks are built once."""
    shared = Workspace()
    assert shared.catalog(SourceOptions()) is shared.catalog(SourceOptions())
    assert shared.catalog(SourceOptions()) is not shared.catalog(SourceOptions(allow_code=True))


def test_a_share_that_cannot_be_is_refused():
    """A share outside 0 to 1 is refused."""
    with pytest.raises(BadInput, match="`keep_outputs` must lie between 0 and 1"):
        Workspace(keep_outputs=1.5)
