"""Errors in task files are reported with the file and the place."""

import pytest

from broca.errors import TaskUnusable, UnknownName
from broca.tasks import Catalog


@pytest.mark.parametrize(
    ("task", "error", "message"),
    [
        # lm-eval itself would report that the task does not exist
        ("broken", TaskUnusable, r"broken\.yaml' cannot be read: line \d+, column \d+"),
        # the file includes a missing one
        ("child", TaskUnusable, r"child\.yaml' cannot be read"),
        # the name may be in the file that could not be read
        ("godo", UnknownName, r"task 'godo' is unknown; did you mean 'good'.*broken"),
        ("absent", TaskUnusable, r"'absent' could not.*absent\.jsonl.*check the paths"),
    ],
)
def test_the_file_that_cannot_be_read_is_named(folder, tokenizer, task, error, message):
    """A syntax error, a missing include and missing data are reported with the file."""
    with pytest.raises(error, match=message):
        Catalog(folder).load(task, tokenizer)


def test_folder_of_broken_files_is_refused(tmp_path):
    """A folder whose only file has a syntax error is refused with the line of the error."""
    (tmp_path / "broken.yaml").write_text("task: [")
    with pytest.raises(TaskUnusable, match=r"broken\.yaml' cannot be read: line \d"):
        Catalog(tmp_path)


def test_good_task_beside_broken_files_is_loaded(folder, tokenizer):
    """Broken files do not affect the other tasks of a folder."""
    assert len(Catalog(folder).load("good", tokenizer).items) == 10
