"""Tasks are found by name; unusable ones are refused in one line."""

import logging
import random

import pytest

from broca.errors import BadInput, TaskUnusable, UnknownName
from broca.tasks import Catalog, Task, TaskOptions


def test_a_group_of_a_folder_may_name_tasks_of_lm_eval(folder, tokenizer):
    """A folder's group may have members of the folder and of lm-eval."""
    text = (folder / "good.yaml").read_text().replace("task: good", "task: gsm8k_own")
    (folder / "own.yaml").write_text(text)
    (folder / "both.yaml").write_text("group: both\ntask: [gsm8k, gsm8k_own]\n")
    (folder / "near.yaml").write_text("group: near\ntask: [gsm8k_own, good]\n")
    catalog = Catalog(folder)
    assert catalog.included_groups == ("both", "near")
    assert catalog.load("near", tokenizer).task_names == ("gsm8k_own", "good")
    with pytest.raises(TaskUnusable, match="openai/gsm8k"):  # the data are on the hub
        catalog.load("both", tokenizer)


def test_names_are_refused_before_anything_is_built(folder):
    """Unknown names, members and files of examples are refused without reading data."""
    (folder / "good.jsonl").unlink()
    (folder / "far.yaml").write_text("group: far\ntask: [gsm8k, {task: gsm8k_own}, gsm9k]\n")
    catalog = Catalog(folder)
    catalog.require_names(["good", "addition", "gsm8k", "data:gsm8k", "general"])
    with pytest.raises(UnknownName, match="'gsm9k' is unknown; did you mean 'gsm8k'"):
        catalog.require_names(["addition", "far"])
    with pytest.raises(BadInput, match=r"none\.jsonl"):
        catalog.require_names(["none.jsonl"])


def test_options_of_a_task_are_refused_before_a_model_is_needed(folder, tokenizer, caplog):
    """A bad metric or split is refused without a model; loaded data are reused.

    Python's generator and the level of lm-eval's logger stay the caller's.
    """
    catalog, drawn = Catalog(folder), random.getstate()
    caplog.set_level(logging.INFO, logger="lm_eval")
    for options in (TaskOptions(metric="exact_mach"), TaskOptions(locate_split="train")):
        with pytest.raises(TaskUnusable, match=r"has no (metric|split)"):
            catalog.require("good", options)
    catalog.require("good")
    for name, content, message in (
        ("none", "group: none\ntask: []\n", "'none' has no tasks"),
        ("odd", "group: odd\ntask: [good]\naggregate_metric_list: acc\n", "AttributeError: "),
        ("seen", "include: good.yaml\ntask: seen\ndoc_to_image: [question]\n", "text alone"),
    ):
        (folder / f"{name}.yaml").write_text(content)
        with pytest.raises(TaskUnusable, match=message):
            Catalog(folder).require(name, TaskOptions(metric="exact_match"))
    (folder / "good.jsonl").unlink()
    assert len(catalog.load("good", tokenizer).items) == 10
    assert random.getstate() == drawn
    assert logging.getLogger("lm_eval").level == logging.INFO


PAIRS = [(f"{number} + 0 =", f" {number}") for number in range(10)]


def test_own_tasks_are_known_by_their_names(folder, tokenizer):
    """A task object that was given once is found by name; a second of a name is refused."""
    catalog, task = Catalog(folder), Task.from_examples(PAIRS, name="good")
    assert catalog.name_of(task) == catalog.name_of(task) == "good"
    assert catalog.load("good", tokenizer).items[3].target == " 3"
    assert catalog.names_of([task, "addition "]) == ["good", "addition"]
    assert catalog.names_of(task) + catalog.names_of("a, b,") == ["good", "a", "b"]
    with pytest.raises(BadInput, match="two tasks are called 'good'"):
        catalog.name_of(Task.from_examples(PAIRS, name="good"))
    with pytest.raises(BadInput, match=r"`task` must be a name or a broca\.Task, not list"):
        catalog.name_of(PAIRS)
    (folder / "same.yaml").write_text((folder / "good.yaml").read_text())
    (folder / "file.yaml").write_text("include: good.yaml\ntask: sums.jsonl\n")
    for known, names in ((catalog, "good"), (Catalog(), "good,good,same"), (Catalog(), "file")):
        with pytest.raises(BadInput, match=r"are called '(good|sums\.jsonl)': give that of"):
            known.names_of([f"{folder}/{name}.yaml" for name in names.split(",")])
