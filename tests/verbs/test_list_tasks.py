"""`broca.list_tasks` lists the tasks that can be named."""

import pytest

import broca
from broca.errors import BadInput
from broca.tasks import Catalog


def test_tasks_are_listed_by_where_they_come_from():
    """Tasks are listed by origin: shipped, for chat models, of the paper, and groups."""
    tasks = broca.list_tasks()
    assert tasks.shipped == Catalog().shipped
    assert len(tasks.shipped) == 10
    assert tasks.names == (*tasks.shipped, *tasks.instruct)
    assert {task.name for task in tasks.paper} >= {"gsm8k", "hellaswag"}
    assert set(tasks.groups["general"]) <= {task.name for task in tasks.paper}
    assert tasks.included == ()


def test_a_folder_adds_its_own(tmp_path):
    """A folder's tasks are added under the names in their files."""
    (tmp_path / "a.yaml").write_text("task: mine\ndataset_path: json\n")
    tasks = broca.list_tasks(include_path=tmp_path)
    assert (tasks.included, tasks.names[-1]) == (("mine",), "mine")


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    """A folder that does not exist is refused; the message names `include_path`."""
    with pytest.raises(BadInput, match="`include_path`"):
        broca.list_tasks(include_path=tmp_path / "none")
