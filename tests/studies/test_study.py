"""Which tasks and heads a study has."""

import pytest

from broca.errors import TaskUnusable
from broca.options import ReproduceOptions
from broca.runs.session import open_run
from broca.studies.study import PAPER, Study


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
        "broca.studies.study.load_tasks",
        lambda model, names, catalog: requested.append(tuple(names)) or stop(),
    )

    def stop():
        raise TaskUnusable("no data")

    for allow in (False, True):
        options = ReproduceOptions.of({"name": "all", "model": random_model, "allow_code": allow})
        with open_run(random_model, options.run_options) as opened, pytest.raises(TaskUnusable):
            Study(opened, options)
    assert requested[1] == PAPER
    assert set(PAPER) - set(requested[0]) == {"mbpp", "humaneval_instruct"}


@pytest.mark.long
def test_universal_heads_are_left_out_and_the_list_filled_up(planted):
    """The list replaces a universal head by the next head, unless `keep_universal` keeps it."""

    def heads(universal, keep=False):
        tasks = ["addition", "addition_words", "capitals", "mc_biology"]
        given = {"model": planted, "tasks": tasks, "limit": 16, "rows": 400, "items": 10}
        options = ReproduceOptions.of({"name": "all", **given, "keep_universal": keep})
        with open_run(planted, options.run_options) as opened:
            study = Study(opened, options)
            vars(study)["universal"] = universal
            assert (study.same_skill("addition"), study.skill("gsm8k")) == (
                ("addition_words",), "math",
            )  # fmt: skip
            return study.list_of("addition").heads

    first, *others = heads(())
    filled = heads((first,))
    assert first not in filled
    assert len(filled) == 5
    assert set(others) <= set(filled)
    assert heads((first,), keep=True)[0] == first
