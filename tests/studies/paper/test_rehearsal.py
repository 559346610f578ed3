"""The rows that tables and figures are expected to measure."""

import pytest
from broca.studies.paper.rehearsal import experiment_stage, study_steps
from broca.studies.paper.running import EXPERIMENTS


def test_every_search_is_expected_once(study):
    """Two tables that need the same atlas and lists expect each search once."""
    before = study.run.finish()
    steps = study_steps(study, {name: EXPERIMENTS[name] for name in ("table2", "table6")})
    assert study.run.finish() == before
    assert [step.stage for step in steps if step.verb] == [
        "atlas: which heads every task needs",
        *(f"cs-stratified on {task}" for task in study.settings.tasks),
    ]
    table2, table6 = (step for step in steps if step.returns)
    assert (table2.stage, table6.stage) == ("table2 of planted", "table6 of planted")
    measured_tasks = {"addition": 3, "addition_words": 3, "capitals": 4, "mc_biology": 4}
    assert table2.rows == sum(2 * 16 * tasks for tasks in measured_tasks.values())
    assert (
        table6.rows == sum(6 * 2 * 16 * tasks for tasks in measured_tasks.values()) + 2 * 6 * 2 * 16
    )


@pytest.mark.long
def test_the_rows_of_a_table_are_those_that_it_measures(study):
    """A table measures at most the expected rows, and more than 90 % of them."""
    reports = []
    stages = study.run.stages
    stages._report = lambda stage, progress: reports.append(progress)
    stages.expect(study_steps(study, {"table2": EXPERIMENTS["table2"]}))
    stages.enter(experiment_stage("table2", study))
    EXPERIMENTS["table2"](study)
    stages.complete(experiment_stage("table2", study))
    last = [progress for progress in reports if progress is not None][-1]
    assert last.done <= last.total
    assert last.done > 0.9 * last.total


def test_what_cannot_be_shown_has_no_rows(study):
    """A table that refuses its tasks is expected to measure no rows."""
    (step,) = study_steps(study, {"gqa": lambda study: EXPERIMENTS["table3"](_one_task(study))})
    assert step.rows == 0


def _one_task(study):
    study.tasks = study.localized = ("capitals",)
    return study
