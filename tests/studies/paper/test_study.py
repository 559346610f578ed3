"""What tables share: tasks, skills, the general score, lists without universal heads."""

import pytest

from broca.errors import TaskUnusable
from broca.studies.paper import Settings, Study
from broca.studies.paper.study import PAPER

TASKS = ["addition", "addition_words", "capitals", "mc_biology"]


@pytest.fixture(scope="module")
def study(planted):
    """Four tasks of three capabilities, multiple choice among them."""
    return Study(planted, Settings(tasks=TASKS, rows=400, items=10, limit=16), lambda text: None)


def test_skills_come_from_the_metadata(study):
    """Tasks of one capability are neither controls of each other nor in the general score."""
    assert study.same_skill("addition") == ("addition_words",)
    assert "addition_words" not in study.general("addition")
    assert study.general("capitals")[:2] == ("addition", "addition_words")
    assert study.skill("gsm8k") == study.skill("arithmetic") == "math"


def test_general_is_the_papers_where_it_is_measured(study):
    """Without mmlu beside knowledge tasks; by all others where none of the four is there."""
    study.tasks = ("gsm8k", "arithmetic", "boolq", "mmlu", "wmdp_bio", "capitals")
    try:
        assert study.general("gsm8k") == ("boolq", "mmlu")
        assert study.general("wmdp_bio") == ("boolq",)
        assert study.knowledge == ("mmlu", "wmdp_bio")
    finally:
        study.tasks = tuple(TASKS)


def test_no_row_is_measured_twice(study):
    """The same heads on the same tasks cost nothing the second time."""
    first = study.scores("addition", ["L0H1"])
    rows = study.bench.rows
    assert study.scores("addition", ["L0H1"]) == first
    assert study.bench.rows == rows


def test_universal_heads_are_left_out_and_the_list_filled_up(study, monkeypatch):
    """As the paper filters them; with `keep_universal` they stay."""
    monkeypatch.setitem(study.__dict__, "universal", ())
    worst = study.found("addition").heads[0]
    study._found.clear()
    monkeypatch.setitem(study.__dict__, "universal", (worst,))
    found = study.found("addition")
    assert found.universal == (worst,)
    assert worst not in found.heads + found.order
    assert len(found.heads) == 5
    study._found.clear()


def test_what_one_skill_needs_is_not_universal(planted):
    """Both wordings of addition need the same heads: without another skill nothing is filtered."""
    settings = Settings(tasks=TASKS[:2], rows=400, items=10, limit=8)
    assert Study(planted, settings, lambda text: None).universal == ()


def test_a_study_of_a_hub_model_asks_the_papers_tasks(random_model, monkeypatch):
    """Without a network their data are missing, which is said; code is left out unless allowed."""
    asked = []
    monkeypatch.setattr(
        "broca.studies.paper.study.Workbench.build",
        lambda model, task, others, **options: asked.append((task, *others)) or stop(),
    )

    def stop():
        raise TaskUnusable("no data")

    for allow in (False, True):
        with pytest.raises(TaskUnusable):
            Study(random_model, Settings(allow_code=allow), lambda text: None)
    assert asked[1] == PAPER
    assert set(PAPER) - set(asked[0]) == {"mbpp", "humaneval_instruct"}
