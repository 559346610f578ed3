"""Methods on simulated models."""

from dataclasses import replace

import numpy as np
import pytest

from broca.errors import BadInput, UnknownName
from broca.searches import Ranking
from broca.studies.methods import (
    SimulatedGrid,
    SimulatedKey,
    simulate,
    simulate_methods,
    simulated_cells_of,
)
from broca.studies.methods import simulations as module
from broca.studies.methods.simulated_tasks import TASK_SCENARIOS, SimulatedTasks
from broca.studies.methods.simulations import PLANTED_SCENARIOS, simulated_model


def key(method="cs-fresh", *, components=120, scenario="additive", rows=1500, seed=0):
    """Returns the key of a simulated cell."""
    return SimulatedKey(components, scenario, method, rows, seed, 5)


@pytest.mark.parametrize("scenario", PLANTED_SCENARIOS)
def test_every_scenario_has_what_it_says(scenario):
    """Each scenario has its tail of effects, interactions, saturation, binary rows or backups."""
    problem = simulated_model(key(scenario=scenario))
    harmful = np.sort(problem.effects)[:45]
    assert (harmful[44] < -0.004) == (scenario != "additive")
    assert len(problem.pairs) == (0 if scenario == "additive" else 30)
    assert problem.saturates == (scenario != "additive")
    assert problem.binary == (scenario == "binary")
    assert (problem.backups is not None) == (scenario == "redundant")


def test_the_strongest_are_found_and_counted():
    """On an additive problem the search recalls every planted component within its rows."""
    cell = simulate(key())
    assert (cell.recall, cell.false, cell.refused) == (1.0, 0, "")
    assert 0 < cell.rows <= 1500
    assert replace(simulate(key()), seconds=0) == replace(cell, seconds=0)


def test_recall_and_false_selections_are_counted(monkeypatch):
    """Recall and top are shares of the five planted components; a backup is no false selection."""
    cell_key = key(scenario="redundant")
    problem = simulated_model(cell_key)
    spare = int(problem.backups[problem.backups >= 0][0])
    planted = {*problem.planted, *problem.backups.ravel().tolist()}
    wrong = next(column for column in range(120) if column not in planted)
    selected = (*problem.planted[:2], spare, wrong)
    unselected = [column for column in range(120) if column not in selected]
    unselected.sort(key=lambda column: column != problem.planted[2])
    ranking = Ranking(np.zeros(120), (*selected, *unselected), selected)
    monkeypatch.setattr(module.searches, "run", lambda search, execute: ranking)
    cell = simulate(cell_key)
    assert (cell.recall, cell.top, cell.false) == (0.4, 0.6, 1)


def test_what_a_method_refuses_is_recorded():
    """A cell records a refusal for too few rows and for gradients of binary responses."""
    assert "`rows` 100 is too few" in simulate(key("greedy", rows=100)).refused
    assert "needs gradients" in simulate(key("gradient", scenario="binary")).refused


@pytest.mark.parametrize("scenario", TASK_SCENARIOS)
def test_a_selection_is_valued_against_the_best_set(scenario, monkeypatch):
    """With other tasks, recall and false selections are counted against the best set."""
    cell_key = key(components=40, scenario=scenario)
    best = SimulatedTasks(TASK_SCENARIOS[scenario], 40, 0).best(5)
    others = [column for column in range(40) if column not in best]
    ranking = Ranking(np.zeros(40), (*best[:3], *others, *best[3:]), (*best[:3], others[0]))
    monkeypatch.setattr(module.searches, "run", lambda search, execute: ranking)
    cell = simulate(cell_key)
    assert cell.recall == pytest.approx(3 / len(best))
    assert cell.false == 1
    assert 0 < cell.specific < cell.best


def test_methods_measure_on_tasks_what_they_measure_on_models():
    """Methods for accuracy, probability and gradients run on simulated tasks within the rows."""
    pooled, stratified, masked = (
        simulate(key(method, components=40, scenario="backups", rows=1800))
        for method in ("pooled", "cs-stratified", "gradient-masked")
    )
    assert {pooled.refused, stratified.refused, masked.refused} == {""}
    assert max(pooled.rows, stratified.rows, masked.rows) <= 1800
    assert pooled.specific > 0.2 < pooled.best


def test_cells_are_kept_and_summed_up(tmp_path):
    """A second call runs nothing; summaries are means over seeds, with refusals counted apart."""
    settings = {
        "methods": "gradient,greedy", "components": (120,), "scenarios": "additive,binary",
        "rows": (60,), "seeds": (0, 1), "out": tmp_path,
    }  # fmt: skip
    ran = []
    summaries = simulate_methods(**settings, on_progress=lambda stage, progress: ran.append(stage))
    reports = len(ran)
    assert len(set(ran)) == 8
    assert simulate_methods(**settings, on_progress=lambda stage, progress: ran.append(stage))
    assert len(ran) == reports
    lines = {(summary.method, summary.scenario): summary for summary in summaries}
    cells = simulated_cells_of(tmp_path).read()
    group = [c for c in cells if (c.key.method, c.key.scenario) == ("gradient", "additive")]
    line = lines["gradient", "additive"]
    assert line.recall == pytest.approx(sum(c.recall for c in group) / 2)
    assert (line.cells, line.refused) == (2, 0)
    assert (lines["greedy", "binary"].cells, lines["greedy", "binary"].refused) == (0, 2)


def test_unknown_scenarios_and_small_models_are_refused():
    """An unknown scenario and too few components are refused."""
    with pytest.raises(UnknownName, match="did you mean 'heavy'"):
        SimulatedGrid(("gradient",), (512,), ("heavi",), (60,), (0,))
    with pytest.raises(BadInput, match="`components` 30"):
        SimulatedGrid(("gradient",), (30,), ("heavy",), (60,), (0,))
