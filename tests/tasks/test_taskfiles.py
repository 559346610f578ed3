"""Task files that cannot be read are named with the place of the error."""

import pytest

from broca.errors import TaskUnusable, UnknownName
from broca.tasks import Catalog


def test_syntax_error_is_refused_with_its_line(folder, tokenizer):
    """lm-eval alone would say that the task does not exist."""
    with pytest.raises(TaskUnusable, match=r"broken\.yaml' cannot be read: line \d+, column \d+"):
        Catalog(folder).load("broken", tokenizer)


def test_missing_include_is_refused(folder, tokenizer):
    """The file that includes it is named."""
    with pytest.raises(TaskUnusable, match=r"child\.yaml' cannot be read"):
        Catalog(folder).load("child", tokenizer)


def test_folder_of_broken_files_is_refused(tmp_path):
    """It holds no task, because of the syntax error."""
    (tmp_path / "broken.yaml").write_text("task: [")
    with pytest.raises(TaskUnusable, match=r"broken\.yaml' cannot be read: line \d"):
        Catalog(tmp_path)


def test_good_task_beside_broken_files_is_loaded(folder, tokenizer):
    """They are in nobody's way."""
    assert len(Catalog(folder).load("good", tokenizer).items) == 10


def test_unknown_task_names_the_file_that_could_not_be_read(folder, tokenizer):
    """The name may be in there."""
    with pytest.raises(UnknownName, match=r"task 'godo' is unknown; did you mean 'good'.*broken"):
        Catalog(folder).load("godo", tokenizer)


def test_missing_data_file_is_refused(folder, tokenizer):
    """The file is named."""
    with pytest.raises(TaskUnusable, match=r"'absent' could not.*absent\.jsonl.*check the paths"):
        Catalog(folder).load("absent", tokenizer)
