"""A tokenizer, tasks of every kind, and a folder with usable and unusable task files."""

import pytest
from harness_tasks import write_task, write_tasks
from tiny import tiny_tokenizer

from broca.tasks import Catalog, RequestTokenizer


@pytest.fixture(scope="session")
def tokenizer():
    """A byte-level tokenizer without a chat template."""
    return RequestTokenizer(tiny_tokenizer(), max_length=1024)


@pytest.fixture(scope="session")
def kinds(tmp_path_factory):
    """A folder with a task of every kind of lm-eval."""
    return write_tasks(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="session")
def catalog(kinds):
    """A catalog with a task of every kind of lm-eval."""
    return Catalog(kinds)


@pytest.fixture
def folder(tmp_path):
    """A good task, two files with errors and a task without data."""
    write_task(tmp_path, "good", [{"question": f"{n} =", "answer": str(n)} for n in range(10)])
    write_task(tmp_path, "absent")
    (tmp_path / "broken.yaml").write_text("task: broken\ndoc_to_text: 'a\nmetric_list: ]\n")
    (tmp_path / "child.yaml").write_text("task: child\ninclude: nothing.yaml\n")
    return tmp_path
