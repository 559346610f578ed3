"""Names of task files, against lm-eval's manager, and files that cannot be read."""

import logging
import os
from pathlib import Path

import lm_eval.tasks
import pytest
from lm_eval.tasks import TaskManager

from broca.errors import BadInput, TaskUnusable, UnknownName
from broca.tasks import Catalog
from broca.tasks.task_index import TaskEntries, harness_entry, may_define, read_task_files

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


def entries_of(folder):
    """Returns the entries of lm-eval's manager of a folder."""
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    return TaskManager(include_path=[str(folder)], include_defaults=False).task_index


def test_names_are_those_of_lm_eval(tmp_path):
    """However files state names, they are lm-eval's; files that cannot be read are named."""
    for name, text in AWKWARD.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    (tmp_path / "bytes.yaml").write_bytes(b"task: \xff\xfe\n")
    os.symlink(tmp_path / "nowhere.yaml", tmp_path / "dangling.yaml")
    entries, broken = read_task_files(tmp_path.rglob("*.yaml"))
    expected = {name: entry for name, entry in entries_of(tmp_path).items() if name is not None}
    assert {"quoted", "around", "flow", "anchored", "a: b", "inherited", "also"} <= expected.keys()
    assert expected.keys() == entries.keys()
    for name, entry in expected.items():
        for attribute in ("kind", "yaml_path", "tags"):
            assert getattr(entries[name], attribute) == getattr(entry, attribute)
    for name in ("broken", "lost"):
        assert any(may_define(text, name) for text in broken)


@pytest.mark.parametrize("folder", ["bbh", "glue", "kormedmcqa", "squadv2", "wmt2016", "aclue"])
def test_names_of_lm_evals_own_folders(folder):
    """Every name of six of lm-eval's folders is found by itself, and every task of its tags."""
    found = TaskEntries(harness_entry)
    for name, entry in entries_of(OWN / folder).items():
        assert (found[name].yaml_path, found[name].tags) == (entry.yaml_path, entry.tags)
        if entry.yaml_path is None:
            assert all(task in found for task in entry.tags)


def test_names_over_several_folders():
    """Members of tags are found in all folders."""
    found = TaskEntries(harness_entry)
    tasks = [found[task] for task in found["math_word_problems"].tags]
    folders = {entry.yaml_path.parent.name for entry in tasks}
    assert {"gsm8k", "mathqa", "aime", "minerva_math"} <= folders


@pytest.mark.parametrize(
    ("task", "error", "message"),
    [
        # lm-eval itself would report that the task does not exist
        ("broken", TaskUnusable, r"broken\.yaml' cannot be read: line \d+, column \d+"),
        # the file includes a missing one
        ("child", TaskUnusable, r"child\.yaml' cannot be read"),
        # the name may be in the file that could not be read
        ("godo", UnknownName, r"task 'godo' is unknown; did you mean 'good'.*broken"),
        ("absent", TaskUnusable, r"'absent' could not.*absent\.jsonl.*check its file"),
        ("46", TaskUnusable, "its 'task' is 46, where a name in quotes is needed"),
    ],
)
def test_the_file_that_cannot_be_read_is_named(folder, tokenizer, task, error, message):
    """A syntax error, a missing include, missing data and a number as name are reported."""
    (folder / "46.yaml").write_text("task: 46\n")
    catalog = Catalog(folder)
    assert len(catalog.load("good", tokenizer).items) == 10
    with pytest.raises(error, match=message):
        catalog.load(task, tokenizer)


def test_folder_without_a_task_is_refused(tmp_path):
    """A folder without a task file, or whose only one has an error or is a folder, is refused.

    A group is enough.
    """
    with pytest.raises(BadInput, match="holds no lm-eval task"):
        Catalog(tmp_path)
    (tmp_path / "broken.yaml").write_text("task: [")
    with pytest.raises(TaskUnusable, match=r"broken\.yaml' cannot be read: line \d"):
        Catalog(tmp_path)
    (tmp_path / "broken.yaml").unlink()
    (tmp_path / "good.yaml").mkdir()
    with pytest.raises(TaskUnusable, match=r"good\.yaml' cannot be read"):
        Catalog(tmp_path)
    (tmp_path / "group.yaml").write_text("group: sums\ntask: [addition]\n")
    assert Catalog(tmp_path).included_groups == ("sums",)
