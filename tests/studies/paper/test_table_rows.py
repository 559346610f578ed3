"""Rows of the tables, on the paper's tasks and a model of random weights."""

import json
from collections import Counter
from importlib.resources import files

import pytest

from broca.searches import DEFAULT_METHOD
from broca.studies.paper import reproduce


def rows_of(everything, name):
    """Returns the rows of a table without their model."""
    return [{k: v for k, v in row.items() if k != "model"} for row in everything[name].rows]


def test_drops_are_intact_minus_ablated(everything):
    """A drop is intact minus ablated and lies in its interval, for tasks and general scores."""
    for name in ("table2", "table3", "table4", "table6", "figure2", "scale"):
        for row in rows_of(everything, name):
            assert row["drop"] == pytest.approx(row["intact"] - row["ablated"])
            assert row["drop_low"] <= row["drop"] <= row["drop_high"]
            general = row["general_intact"] - row["general_ablated"]
            assert row["general_drop"] == pytest.approx(general)


def test_the_right_answers_are_the_models_own(everything):
    """The intact model scores 1, because the data's labels are its own answers."""
    assert {row["intact"] for row in rows_of(everything, "table2")} == {1.0}
    assert rows_of(everything, "table7")[0] == {
        "head": "none", **dict.fromkeys(("boolq", "wmdp_bio", "wmdp_chem"), 1.0),
        "mean": 1.0,
    }  # fmt: skip


def test_heads_are_crossed_within_a_skill(everything):
    """Table 3 measures the list of each of two tasks of one skill on both tasks."""
    pairs = [(row["found_on"], row["measured_on"]) for row in rows_of(everything, "table3")]
    tasks = {"wmdp_bio", "wmdp_chem"}
    assert sorted(pairs) == sorted((first, second) for first in tasks for second in tasks)
    ablated = {row["task"]: row["ablated"] for row in rows_of(everything, "table2")}
    for row in rows_of(everything, "table3"):
        if row["found_on"] == row["measured_on"]:
            assert row["ablated"] == ablated[row["found_on"]]


def test_methods_are_the_papers_and_ours(everything):
    """Table 4 has every method, the package's default among them, within the rows."""
    rows = rows_of(everything, "table4")
    methods = {"greedy", "one-shot", "cs-bernoulli", "cs-stratified", DEFAULT_METHOD}
    for task in ("wmdp_bio", "wmdp_chem"):
        assert {row["method"] for row in rows if row["task"] == task} == methods
    assert all(0 < row["rows"] <= 600 for row in rows)


def test_the_sweep_begins_with_nothing_and_follows_the_list(everything):
    """Figure 2 extends table 6; k = 0 has no drop and k = 3 is the list of table 9."""
    short, long = rows_of(everything, "table6"), rows_of(everything, "figure2")
    assert all(row["drop"] == 0 and row["head"] == "" for row in long if row["k"] == 0)
    for row in rows_of(everything, "table9"):
        short_heads = [step["head"] for step in short if step["task"] == row["task"] and step["k"]]
        long_heads = [step["head"] for step in long if step["task"] == row["task"] and step["k"]]
        assert short_heads == long_heads[:5]
        assert short_heads[:3] == row["heads"].split()


def test_universal_heads_are_in_no_list(everything):
    """Universal heads are left out of the lists; tables 5 and 7 measure them one by one."""
    universal = {row["head"] for row in rows_of(everything, "table7")} - {"none"}
    assert universal == {row["head"] for row in rows_of(everything, "table5")}
    for row in rows_of(everything, "table9"):
        assert not set(row["heads"].split()) & universal
        assert set(row["universal"].split()) <= universal
    intact, *without = rows_of(everything, "table7")
    for row, lost in zip(without, rows_of(everything, "table5"), strict=True):
        drops = [intact[task] - row[task] for task in ("wmdp_bio", "wmdp_chem")]
        assert lost["hazardous knowledge"] == pytest.approx(sum(drops) / 2)
        assert lost["general"] == pytest.approx(intact["boolq"] - row["boolq"])


def test_shared_heads_are_in_two_lists_or_said_to_be_none(everything):
    """Table 8 has the heads of both lists, or a note that there are none."""
    lists = [set(row["heads"].split()) for row in rows_of(everything, "table9")]
    times = Counter(head for heads in lists for head in heads)
    shared = {head for head, count in times.items() if count > 1}
    intact, *without = rows_of(everything, "table8")
    assert intact["head"] == "none"
    assert {row["head"] for row in without} == shared
    for row in without:
        knowledge = [row[task] for task in ("wmdp_bio", "wmdp_chem")]
        assert row["knowledge_mean"] == pytest.approx(sum(knowledge) / 2)
        assert row["other_mean"] == row["boolq"]
    if not shared:
        assert any("no head is in the lists of" in note for note in everything["table8"].notes)


def test_pairs_are_counted_as_they_are(everything):
    """The pairs in one KV group equal a recount, and the total is the sum over the skills."""
    *parts, total = rows_of(everything, "gqa")
    assert total["skill"] == "all"
    assert sum(row["pairs_in_one_group"] for row in parts) == total["pairs_in_one_group"]
    for row in parts:
        heads = [tuple(map(int, name[1:].split("H"))) for name in row["heads"].split()]
        groups = [(layer, head // 2) for layer, head in heads]
        pairs = sum(groups[:n].count(group) for n, group in enumerate(groups))
        assert row["pairs_in_one_group"] == pairs
        assert 0 < row["p"] <= 1


def test_lists_of_planted_are_its_sets(planted):
    """The lists of `planted` in table 9 contain the planted sets of two heads."""
    text = (files("broca") / "reference_models" / "planted" / "planted_heads.json").read_text()
    (lists,) = reproduce(
        "table9", planted, tasks="capitals,rhyming", rows=800, items=10, limit=8,
        keep_universal=True,
    )  # fmt: skip
    heads = {row["task"]: set(row["heads"].split()) for row in lists.rows}
    assert set(json.loads(text)["facts"]) <= heads["capitals"]
    assert set(json.loads(text)["rhyming"]) <= heads["rhyming"]
