"""The rows behind the figures."""

from statistics import fmean

import pytest


def test_the_radar_has_every_task_on_every_line(everything):
    """The intact line and each skill's list cover every task; values equal the tables'."""
    rows = everything["figure1"].rows
    assert {row["heads_of"] for row in rows} == {"none", "wmdp_bio"}
    by_line = [row["measured_on"] for row in rows if row["heads_of"] == "wmdp_bio"]
    assert by_line == [row["measured_on"] for row in rows if row["heads_of"] == "none"]
    assert all(row["ablated"] == row["intact"] for row in rows if row["heads_of"] == "none")
    (same_task,) = [row for row in rows if row["heads_of"] == row["measured_on"]]
    table = {row["task"]: row["ablated"] for row in everything["table2"].rows}
    assert same_task["ablated"] == table["wmdp_bio"]


def test_bars_of_shared_heads_are_those_of_the_table(everything):
    """Figure 3 has the heads and scores of table 8; `general` is the other task."""
    rows = everything["figure3"].rows
    for line in everything["table8"].rows:
        scores = {
            row["measured_on"]: row["ablated"] for row in rows if row["heads"] == line["head"]
        }
        assert scores["general"] == line["boolq"]
        knowledge = [scores[task] for task in ("wmdp_bio", "wmdp_chem")]
        assert fmean(knowledge) == pytest.approx(line["knowledge_mean"])


def test_bars_of_own_heads_are_those_of_the_table(everything):
    """Figure 4 has the scores of table 3: each list on each knowledge task."""
    rows = {
        (row["heads"], row["measured_on"]): row["ablated"] for row in everything["figure4"].rows
    }
    for line in everything["table3"].rows:
        assert rows[line["found_on"], line["measured_on"]] == line["ablated"]
    assert {heads for heads, _ in rows} == {"none", "wmdp_bio", "wmdp_chem"}
