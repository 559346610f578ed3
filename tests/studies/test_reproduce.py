"""Reproductions end to end: the paper's tasks on a model of random weights, and refusals."""

import pytest
from studies.own_answers import TASKS

from broca import reproduce
from broca.errors import BadInput, NothingToLocalize, UnknownName
from broca.searches import DEFAULT_METHOD
from broca.studies import ALL, NAMES
from broca.studies.reproduction import EXPERIMENTS, PAPER_METHODS

KNOWLEDGE = ("wmdp_bio", "wmdp_chem")


@pytest.mark.long
def test_all_of_it_runs_on_the_papers_tasks(everything):
    """Every table and figure has rows of the model, but `table5` may be empty."""
    assert list(everything) == list(NAMES) == list(EXPERIMENTS)
    assert ALL not in NAMES
    for name, shown in everything.items():
        assert shown.models == ("random/three-layers",)
        assert shown.rows or name == "table5", (name, shown.notes)
        assert all(row["model"] == "random/three-layers" for row in shown.rows)
    assert any("one model shows no dependence" in note for note in everything["scale"].notes)
    settings = everything["table9"].settings
    assert (settings["method"], settings["tasks"]) == ("cs-stratified", [*TASKS, "gsm8k"])
    assert [settings[name] for name in ("rows", "items", "k", "seed")] == [600, 6, 3, 0]


@pytest.mark.long
def test_a_task_that_the_model_cannot_do_is_left_out_and_said(everything):
    """gsm8k, which random weights answer wrongly, has no list, and every result notes why."""
    for shown in everything.values():
        assert any("scores 0.000 on gsm8k" in note for note in shown.notes), shown.name
    assert {row["task"] for row in everything["table9"].rows} == set(KNOWLEDGE)


@pytest.mark.long
def test_drops_are_intact_minus_ablated(everything):
    """A drop is intact minus ablated and lies in its interval, for tasks and general scores."""
    for name in ("table2", "table3", "table4", "table6", "figure2", "scale"):
        for row in everything[name].rows:
            assert row["drop"] == pytest.approx(row["intact"] - row["ablated"])
            assert row["drop_low"] <= row["drop"] <= row["drop_high"]
            general = row["general_intact"] - row["general_ablated"]
            assert row["general_drop"] == pytest.approx(general)
    assert {row["intact"] for row in everything["table2"].rows} == {1.0}  # labels are its answers
    compared = everything["table4"].rows
    assert {row["method"] for row in compared} == {*PAPER_METHODS, DEFAULT_METHOD}
    assert all(0 < row["rows"] <= 600 for row in compared)


@pytest.mark.long
def test_tables_and_figures_that_measure_the_same_agree(everything):
    """Lists within and across tasks have the same scores wherever they are shown."""
    own = {row["task"]: row["ablated"] for row in everything["table2"].rows}
    crossed = {
        (row["found_on"], row["measured_on"]): row["ablated"] for row in everything["table3"].rows
    }
    assert set(crossed) == {(first, second) for first in KNOWLEDGE for second in KNOWLEDGE}
    assert {task: crossed[task, task] for task in KNOWLEDGE} == own
    bars = {
        (row["heads"], row["measured_on"]): row["ablated"] for row in everything["figure4"].rows
    }
    assert {heads for heads, _ in bars} == {"none", *KNOWLEDGE}
    assert all(bars[pair] == ablated for pair, ablated in crossed.items())
    radar = everything["figure1"].rows
    assert {row["heads_of"] for row in radar} == {"none", "wmdp_bio"}
    assert all(row["ablated"] == row["intact"] for row in radar if row["heads_of"] == "none")
    (same_task,) = [row for row in radar if row["heads_of"] == row["measured_on"]]
    assert same_task["ablated"] == own["wmdp_bio"]


@pytest.mark.long
def test_the_sweep_begins_with_nothing_and_follows_the_list(everything):
    """Figure 2 extends table 6; k = 0 has no drop and k = 3 is the list of table 9."""
    short, long = everything["table6"].rows, everything["figure2"].rows
    assert all(row["drop"] == 0 and row["head"] == "" for row in long if row["k"] == 0)
    for row in everything["table9"].rows:
        first, more = (
            [step["head"] for step in steps if step["task"] == row["task"] and step["k"]]
            for steps in (short, long)
        )
        assert first == more[:5]
        assert first[:3] == row["heads"].split()


@pytest.mark.long
def test_universal_heads_are_in_no_list(everything):
    """Universal heads are left out of the lists; tables 5 and 7 measure them one by one."""
    intact, *without = everything["table7"].rows
    universal = {row["head"] for row in without}
    assert universal == {row["head"] for row in everything["table5"].rows}
    for row in everything["table9"].rows:
        assert not set(row["heads"].split()) & universal
        assert set(row["universal"].split()) <= universal
    for row, lost in zip(without, everything["table5"].rows, strict=True):
        drops = [intact[task] - row[task] for task in KNOWLEDGE]
        assert lost["hazardous knowledge"] == pytest.approx(sum(drops) / 2)
        assert lost["general"] == pytest.approx(intact["boolq"] - row["boolq"])


@pytest.mark.long
def test_shared_heads_are_in_two_lists_or_said_to_be_none(everything):
    """Table 8 and figure 3 have the heads of both lists, or a note that there are none."""
    first, second = (set(row["heads"].split()) for row in everything["table9"].rows)
    assert [row["head"] for row in everything["table8"].rows][1:] == sorted(first & second)
    for row in everything["table8"].rows:
        own = [bar for bar in everything["figure3"].rows if bar["heads"] == row["head"]]
        bars = {bar["measured_on"]: bar["ablated"] for bar in own}
        assert row["knowledge_mean"] == pytest.approx(sum(row[task] for task in KNOWLEDGE) / 2)
        assert bars == {**{task: row[task] for task in KNOWLEDGE}, "general": row["boolq"]}
        assert row["other_mean"] == row["boolq"]
    notes = " ".join(everything["table8"].notes)
    assert ("no head is in the lists of" in notes) == (not first & second)


@pytest.mark.long
def test_models_stand_below_one_another(planted, reference):
    """Two models share one table, with the numbers of a reproduction of one model."""
    settings = {
        "tasks": "rhyming", "rows": 200, "items": 10, "limit": 8, "keep_universal": True,
    }  # fmt: skip
    (two_models,) = reproduce("scale", [planted, reference], **settings)
    assert [row["model"] for row in two_models.rows] == ["planted", "reference"]
    assert {row["parameters"] for row in two_models.rows} == {1_220_864}
    lists, size = reproduce("table9,scale", "planted", dtype="float32", **settings)
    assert ([row["task"] for row in lists.rows], lists.settings["dtype"]) == (
        ["rhyming"],
        "float32",
    )
    assert size.rows == two_models.rows[:1]


@pytest.mark.parametrize(
    ("name", "settings", "error", "message"),
    [
        ("tabel2", {}, UnknownName, "`name` 'tabel2' is unknown.*mean 'table2'.*, all"),
        ("scale", {}, BadInput, "scale compares models: name two or more"),
        ("table2", {"method": "gredy"}, UnknownName, "did you mean 'greedy'"),
        ("table2", {"tasks": "additon"}, UnknownName, "did you mean 'addition'"),
        ("table3", {"tasks": "addition,capitals"}, BadInput, "no two tasks have the same skill"),
        ("table8", {"tasks": "addition,capitals"}, BadInput, "fewer than two tasks ask for know"),
        ("table4,table7", {"keep_universal": True}, BadInput, "`keep_universal` is about lists of"),
        ("table2", {"tasks": ""}, BadInput, "`tasks` names none"),
    ],
)
def test_what_cannot_be_shown_is_refused(planted, name, settings, error, message):
    """Bad names, settings and tasks are refused with a message that says what to do."""
    with pytest.raises(error, match=message):
        reproduce(name, planted, **{"limit": 8, **settings})


def test_of_several_models_a_later_one_costs_no_rows(small, planted):
    """A later model is refused by its name before any is measured; what it lacks is a note."""
    settings = {"tasks": "capitals", "limit": 8, "rows": 300, "items": 10, "method": "greedy"}
    with pytest.raises(UnknownName, match="model 'plantd' is unknown"):
        reproduce("table9", [small, "plantd"], on_progress=pytest.fail, **settings)
    (lists,) = reproduce("table9", [small, planted], keep_universal=True, **settings)
    assert [row["model"] for row in lists.rows] == ["reference-small"]
    assert "planted: `rows` 300 is too few" in lists.notes[-1]


def test_a_model_that_can_do_nothing_is_refused(tiny):
    """A model of random weights that fails every shipped task is refused."""
    with pytest.raises(NothingToLocalize, match="tiny is shown to do none of the 2 tasks"):
        reproduce("table2", tiny, tasks="addition,capitals", limit=8)
