"""Names of tasks, read from the text of their files, against lm-eval's manager."""

import logging
import os
from pathlib import Path

import lm_eval.tasks
import pytest
from lm_eval.tasks import TaskManager

from broca.tasks.task_index import TaskIndex, members_of, with_members

OWN = Path(lm_eval.tasks.__file__).parent

AWKWARD = {
    "plain.yaml": "task: plain\ndataset_path: json\ntag: marked\n",
    "quoted.yaml": "\"task\": \"quoted\"\n'tag':\n  - marked\n  - 'also'  # a comment\n",
    "commented.yaml": "# task: no\ntask: commented # task: no\ndoc_to_text: |\n  group: no\n",
    "_base.yaml": "tag: inherited\ndataset_path: json\n",
    "_base_template": "tag: [inherited, marked]\ndataset_path: json\n",
    "including.yaml": "include: _base.yaml\ntask: including\n",
    "over.yaml": "task: over\ninclude: _base_template\n",
    "deep/around.yaml": "include: ../including.yaml\ntask: around\ntag: other\n",
    "flow.yaml": "{task: flow, tag: [marked]}\n",
    "listed.yaml": "task: listed\ntag:\n- one\n- two\n",
    "group.yaml": "group: all\ntask:\n  - plain\n  - task: quoted\n    repeats: 2\n  - marked\n",
    "nested.yaml": "group: outer\ntask:\n  - group: inner\n    task: [over]\n  - all\n",
    "inherits_group.yaml": "include: group.yaml\ntask: not_a_name\n",
    "twice.yaml": "task: plain\n",
    "z/twice.yaml": "group: plain\ntask: [over]\n",
    "class.yaml": "task: made\nclass: !function some.Made\n",
    "null.yaml": "task: null\ngroup: empty\n",
    "broken.yaml": "task: broken\n  x: [\n",
    "cycle.yaml": "include: cycle.yaml\ntask: cycle\n",
    "lost.yaml": "include: nowhere.yaml\ntask: lost\n",
    "colon.yaml": "task: 'a: b'\n",
    "anchor.yaml": "task: &name anchored\n",
    "crlf.yaml": "task: crlf\r\ntag:\r\n  - marked\r\n",
    "text.yaml": "just a text\n",
    "__pycache__/ignored.yaml": "task: ignored\n",
}


@pytest.fixture
def awkward(tmp_path):
    """A folder of task files that state their names in many ways."""
    for name, text in AWKWARD.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def manager(*folders):
    """Returns lm-eval's manager of some folders."""
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    return TaskManager(include_path=[str(folder) for folder in folders], include_defaults=False)


def test_names_are_those_of_lm_eval(awkward):
    """Names, groups and tags equal lm-eval's, and an unparsable file keeps its name."""
    index, expected = TaskIndex(awkward), manager(awkward)
    texts = [name for name in expected.all_tasks if isinstance(name, str)]
    assert {"quoted", "around", "flow", "anchored", "a: b", "inherited", "also"} <= {*texts}
    assert set(index.names) == {*texts, "broken"}
    assert set(index.groups) == {name for name in expected.all_groups if isinstance(name, str)}
    assert set(index.tags) == set(expected.all_tags)
    assert "plain" in index
    assert "no" not in index


@pytest.mark.parametrize("folder", ["bbh", "glue", "kormedmcqa", "squadv2", "wmt2016", "aclue"])
def test_names_of_lm_evals_own_folders(folder):
    """Names, groups and tags of six of lm-eval's folders equal its manager's."""
    index, expected = TaskIndex(OWN / folder), manager(OWN / folder)
    assert index.names == tuple(expected.all_tasks)
    assert index.groups == tuple(expected.all_groups)
    assert index.tags == tuple(expected.all_tags)


def test_folders_hold_everything_that_a_name_stands_for(tmp_path):
    """The folders of a group hold its members; the first of two definitions counts."""
    for name, text in {
        "a/plain.yaml": "task: plain\ndescription: first\n",
        "b/group.yaml": "group: all\ntask: [plain, {group: more}]\n",
        "b/plain.yaml": "task: plain\ndescription: second\n",
        "c/sub/more.yaml": "group: more\ntask: [tagged]\n",
        "d/one.yaml": "task: one\ntag: tagged\n",
        "unrelated/task.yaml": "task: unrelated\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    index = TaskIndex(tmp_path)
    folders = index.folders_of(["all", "nothing"])
    assert folders == tuple(tmp_path / name for name in ("d", "c/sub", "b", "a"))
    tasks = manager(*folders).task_index
    assert set(tasks) == {"plain", "all", "more", "tagged", "one"}
    assert tasks["plain"].cfg["description"] == "first"
    (tmp_path / "d" / "two").mkdir()
    (tmp_path / "d" / "two" / "two.yaml").write_text("task: two\ntag: tagged\n")
    (tmp_path / "a" / "three.yaml").write_text("task: three\ntag: tagged\n")
    (around,) = TaskIndex(tmp_path).folders_of(["tagged"])
    assert around == tmp_path, "the tasks of a tag must be seen at once"
    assert manager(around).task_index["tagged"].tags == {"one", "two", "three"}


def test_members_of_groups_are_found_however_deep():
    """Members are names, tasks with settings and the members of inner groups."""
    members = ["a", {"task": "b", "num_fewshot": 1}, {"group": "c", "task": ["d", {"task": "e"}]}]
    assert members_of(members) == ["a", "b", "c", "d", "e"]
    assert members_of(None) == []


def test_groups_may_hold_each_other():
    """Members of members are found, each once, also where two groups hold each other."""
    groups = {"all": ["a", "some"], "some": ["b", "all"]}
    assert with_members(["all", "c"], lambda name: groups.get(name, [])) == {
        "all", "some", "a", "b", "c",
    }  # fmt: skip


def test_a_file_that_cannot_be_read_is_left_out(awkward):
    """Files that are not text and dangling links are left out."""
    (awkward / "bytes.yaml").write_bytes(b"task: \xff\xfe\n")
    os.symlink(awkward / "nowhere.yaml", awkward / "dangling.yaml")
    assert "plain" in TaskIndex(awkward)
