"""Expected rows agree with the rows that a run measures."""

import pytest

import broca
from broca.options import SearchOptions
from broca.runs.forecast import Forecast
from broca.runs.setup import claimed
from broca.runs.verb_steps import both_ways_steps, localization_steps
from broca.tasks import Catalog
from broca.verification import QUICK

SMALL = {"rows": 600, "items": 12, "seed": 0}


@pytest.fixture(scope="module")
def model():
    """A small shipped model."""
    return broca.load("reference-small")


@pytest.fixture
def forecasts(monkeypatch):
    """Every forecast to which steps are added, with the steps as they were expected."""
    additions = []
    add = Forecast.add

    def noted(self, steps, **options):
        add(self, steps, **options)
        if steps:
            additions.append((list(steps), self))

    monkeypatch.setattr(Forecast, "add", noted)
    return additions


def test_a_localization_measures_what_is_expected_step_by_step(model, forecasts):
    """Every step is expected, and none measures more except random sets, which may double."""
    result = broca.localize(
        model, "sorting", others=["capitals"], limit=40, interactions=2, k=3, **SMALL
    )
    ((expected, forecast),) = forecasts
    done = dict(zip((step.stage for step in expected), forecast._done, strict=True))
    planned = {step.stage: step.rows for step in expected}
    assert done["scoring the intact model"] == planned["scoring the intact model"] > 0
    assert done["looking for right answers"] == planned["looking for right answers"] > 0
    assert done["searching (pooled)"] == result.cost.rows <= planned["searching (pooled)"] == 600
    assert done["measuring pairs"] == planned["measuring pairs"] > 0
    if result.selected:
        assert done["verifying on the report items"] == planned["verifying on the report items"]
        sets = done["verifying: random sets"] / planned["verifying: random sets"]
        assert 0.5 <= sets <= 2
        assert done["verifying: each member"] <= planned["verifying: each member"]
        outputs = planned["verifying: the outputs"]
        assert outputs - 2 * QUICK.changes * 3 < done["verifying: the outputs"] <= outputs
    outlook = forecast.outlook()
    assert outlook.done == outlook.total
    assert outlook.seconds_left == 0.0


def test_a_search_without_a_budget_is_counted(model, forecasts):
    """The search is expected to measure every head alone and the intact model."""
    broca.localize(model, "capitals", others=[], limit=40, method="one-shot", items=4, verify=False)
    ((expected, _),) = forecasts
    assert {step.stage: step.rows for step in expected}["searching (one-shot)"] == 49 * 4


def test_an_atlas_measures_its_budget(model, forecasts):
    """The last step is expected to measure the budget and does not exceed it."""
    broca.atlas(model, ["sorting", "capitals"], items=10, rows=400, limit=40, seed=0)
    ((expected, forecast),) = forecasts
    assert [step.rows for step in expected][-1] == 400
    assert forecast.outlook().done == forecast.outlook().total
    assert forecast._done[-1] <= 400


def test_localizations_of_same_skill_tasks_are_expected(model):
    """The steps have the rows of a search and of two masks on every report item of the task."""
    catalog, options = Catalog(), SearchOptions(k=2, rows=600, items=12)
    tasks = claimed(
        model, "addition", catalog, others=["addition_words", "capitals"], items=100, seed=0,
        limit=16, searched="task",
    )  # fmt: skip
    localization, measured = both_ways_steps(model, tasks, options, seed=0)
    assert (localization.stage, localization.verb) == ("localizing addition_words", True)
    alone = claimed(model, "addition_words", catalog, others=[], items=12, seed=0)
    expected = localization_steps(model, alone, "pooled", options, False, 0)
    assert localization.rows == sum(step.rows for step in expected) > 600
    assert (measured.stage, measured.rows) == ("verifying: the selection for addition_words", 32)
