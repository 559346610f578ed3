"""The shared parts of the tables: tasks, skills, the general score, lists of heads."""

from dataclasses import replace

import pytest

from broca.errors import TaskUnusable
from broca.options import ReproduceOptions
from broca.runs.session import open_run
from broca.studies.paper.study import PAPER, Study


def test_skills_come_from_the_metadata(study):
    """Tasks of one capability are neither controls of each other nor in the general score."""
    assert study.same_skill("addition") == ("addition_words",)
    assert "addition_words" not in study.general("addition")
    assert study.general("capitals")[:2] == ("addition", "addition_words")
    assert study.skill("gsm8k") == study.skill("arithmetic") == "math"


def test_general_is_the_papers_where_it_is_measured(study):
    """The general score uses boolq and mmlu, without mmlu for knowledge tasks."""
    study.tasks = ("gsm8k", "arithmetic", "boolq", "mmlu", "wmdp_bio", "capitals")
    try:
        assert study.general("gsm8k") == ("boolq", "mmlu")
        assert study.general("wmdp_bio") == ("boolq",)
        assert study.knowledge == ("mmlu", "wmdp_bio")
    finally:
        study.tasks = tuple(study.options.tasks)


def test_universal_heads_are_left_out_and_the_list_filled_up(study, monkeypatch):
    """The list replaces a universal head by the next head, unless `keep_universal` keeps it."""
    monkeypatch.setitem(study.__dict__, "universal", ())
    worst = study.list_of("addition").heads[0]
    study._lists.clear()
    monkeypatch.setitem(study.__dict__, "universal", (worst,))
    listed = study.list_of("addition")
    assert listed.universal == (worst,)
    assert worst not in listed.heads + listed.order
    assert len(listed.heads) == 5
    study._lists.clear()
    monkeypatch.setattr(study, "options", replace(study.options, keep_universal=True))
    assert study.list_of("addition").heads[0] == worst
    study._lists.clear()


def test_what_one_skill_needs_is_not_universal(planted):
    """Tasks of only one skill have no universal heads."""
    options = ReproduceOptions.of(
        {"name": "all", "model": planted, "tasks": "addition,addition_words", "limit": 8}
    )
    with open_run(planted, options.run_options) as opened:
        assert Study(opened, options).universal == ()


def test_a_study_of_a_hub_model_asks_the_papers_tasks(random_model, monkeypatch):
    """A hub model gets the paper's tasks; code tasks are left out unless allowed."""
    requested = []
    monkeypatch.setattr(
        "broca.studies.paper.study.load_tasks",
        lambda model, names, catalog: requested.append(tuple(names)) or stop(),
    )

    def stop():
        raise TaskUnusable("no data")

    for allow in (False, True):
        options = ReproduceOptions.of({"name": "all", "model": random_model, "allow_code": allow})
        with (
            open_run(random_model, options.run_options) as opened,
            pytest.raises(TaskUnusable),
        ):
            Study(opened, options)
    assert requested[1] == PAPER
    assert set(PAPER) - set(requested[0]) == {"mbpp", "humaneval_instruct"}
