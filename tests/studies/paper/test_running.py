"""Reproductions end to end: the paper's tasks on a model of random weights, and refusals."""

import pytest
from broca.studies.paper.running import EXPERIMENTS, stem_of
from studies.paper.own_answers import TASKS

from broca.engine import Engine
from broca.errors import BadInput, NothingToLocalize, UnknownName
from broca.journal import Journal
from broca.studies.paper import ALL, NAMES, reproduce

ONE_SKILL = {"tasks": "addition,addition_words", "rows": 800, "items": 10, "limit": 10}


def test_every_name_has_its_experiment():
    """The names that the help lists are the experiments, in the same order."""
    assert list(NAMES) == list(EXPERIMENTS)


def test_all_of_it_runs_on_the_papers_tasks(everything):
    """Every table and figure has rows of the model, but `table5` may be empty."""
    assert list(everything) == list(NAMES)
    for name, shown in everything.items():
        assert shown.models == ("random/three-layers",)
        assert shown.rows or name == "table5", (name, shown.notes)
        assert all(row["model"] == "random/three-layers" for row in shown.rows)
    assert any("one model shows no dependence" in note for note in everything["scale"].notes)


def test_a_task_that_the_model_cannot_do_is_left_out_and_said(everything):
    """gsm8k, which random weights answer wrongly, has no list, and every result notes why."""
    for shown in everything.values():
        assert any("scores 0.000 on gsm8k" in note for note in shown.notes), shown.name
    assert {row["task"] for row in everything["table9"].rows} == set(TASKS) - {"boolq"}


def test_models_stand_below_one_another(planted, reference):
    """Two models share one table, with the numbers of a reproduction of one model."""
    settings = {
        "tasks": "rhyming", "rows": 200, "items": 10, "limit": 8, "keep_universal": True,
    }  # fmt: skip
    (two_models,) = reproduce("scale", [planted, reference], **settings)
    assert [row["model"] for row in two_models.rows] == ["planted", "reference"]
    assert {row["parameters"] for row in two_models.rows} == {1_220_864}
    lists, size = reproduce("table9,scale", planted, **settings)
    assert [row["task"] for row in lists.rows] == ["rhyming"]
    assert size.rows == two_models.rows[:1]
    assert size.notes == ("one model shows no dependence on size: name several",)


def test_no_row_is_measured_twice_by_the_same_command(planted, tmp_path, monkeypatch):
    """The second reproduction reads all rows of searches and scores from the journal."""
    settings = {
        "tasks": "rhyming,capitals", "rows": 200, "items": 10, "limit": 8,
        "keep_universal": True, "journal": tmp_path / "journal.sqlite",
    }  # fmt: skip

    def row_count():
        with Journal(settings["journal"], read_only=True) as journal:
            return journal.query("SELECT count(*) FROM rows")[0][0]

    first = reproduce("table2", planted, **settings)
    rows = row_count()
    measured = []
    run = Engine.run
    monkeypatch.setattr(
        Engine, "run", lambda *arguments, **named: measured.append(1) or run(*arguments, **named)
    )
    assert reproduce("table2", planted, **settings) == first
    assert not measured
    assert row_count() == rows


def test_heads_of_one_wording_hurt_the_other(planted):
    """In table 3 of `planted`, the heads of each wording cost the other over 50 points."""
    (table,) = reproduce("table3", planted, **{**ONE_SKILL, "rows": 1200})
    crossed = [row for row in table.rows if row["found_on"] != row["measured_on"]]
    assert len(crossed) == 2
    assert all(row["drop"] > 0.5 for row in crossed)


@pytest.mark.parametrize(
    ("name", "settings", "error", "message"),
    [
        ("tabel2", {}, UnknownName, "did you mean 'table2'.*known are table2.*or|and all"),
        ("scale", {}, BadInput, "scale compares models: name two or more"),
        ("table2", {"limit": 3}, BadInput, "`limit` must be at least 8, not 3"),
        ("table2", {"k": 0}, BadInput, "`k` must be at least 1, not 0"),
        ("table2", {"method": "focsu"}, UnknownName, "did you mean 'focus'"),
        ("table2", {"tasks": "additon"}, UnknownName, "did you mean 'addition'"),
        ("table3", {"tasks": "addition,capitals"}, BadInput, "no two tasks have the same skill"),
        ("table8", {"tasks": "addition,capitals"}, BadInput, "fewer than two tasks ask for know"),
        ("table2", {"tasks": ""}, BadInput, "`tasks` names none"),
    ],
)
def test_what_cannot_be_shown_is_refused(planted, name, settings, error, message):
    """Bad names, settings and tasks are refused with a message that says what to do."""
    with pytest.raises(error, match=message):
        reproduce(name, planted, **{"limit": 8, **settings})


def test_a_model_that_can_do_nothing_is_refused(tiny):
    """A model of random weights that fails every shipped task is refused."""
    with pytest.raises(NothingToLocalize, match="tiny can do none of the 2 tasks"):
        reproduce("table2", tiny, tasks="addition,capitals", limit=8)


def test_files_are_called_after_the_models():
    """File names take the last part of a folder or hub id."""
    assert stem_of(["./models/mine/", "org/model-1b"]) == "mine+model-1b"
    assert ALL not in NAMES
