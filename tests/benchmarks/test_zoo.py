"""The zoo: every model loads, can be gated and has the scores that its card states."""

import json
from pathlib import Path

import numpy as np
import pytest

import broca
from broca.measurement import Plan
from broca.options import SourceOptions
from broca.runs.task_sets import load_tasks, whole_tasks

ZOO = Path(__file__).parents[2] / "benchmarks" / "zoo"
NAMES = sorted(card.parent.name for card in ZOO.glob("models/*/card.json"))
FIRST = 25


@pytest.fixture(scope="module")
def workspace():
    """A workspace shared by the models, so that a task is built once for each tokenizer."""
    with broca.Workspace() as workspace:
        yield workspace


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_model_loads_and_has_the_stated_scores(script, workspace, name):
    """A model passes the self-test at load and has lm-eval's scores on the first items."""
    (entry,) = (model for model in script("zoo").models() if model.name == name)
    card = json.loads((entry.folder / "card.json").read_text())
    model = broca.load(entry.folder)
    assert len(model.components) == card["heads"]
    catalog = workspace.catalog(SourceOptions(include_path=entry.include_path))
    tasks = whole_tasks(load_tasks(model, entry.tasks, catalog))
    run = broca.Run(model, tasks, workspace)
    first = [tasks.places["report"][task][:FIRST] for task in entry.tasks]
    plan = Plan.crossed(np.zeros((1, card["heads"]), dtype=bool), np.concatenate(first))
    scores = run.measure(plan).responses.reshape(len(entry.tasks), FIRST).mean(axis=1)
    stated = card[f"scores_of_first_{FIRST}"]
    assert dict(zip(entry.tasks, scores, strict=True)) == pytest.approx(stated)


def test_the_readme_has_the_tables_of_the_kept_sets(script, tmp_path):
    """Writing the tables of the stored sets leaves the README unchanged."""
    page, ceilings = tmp_path / "README.md", script("zoo.ceilings")
    page.write_text((ZOO / "README.md").read_text())
    content = json.loads((ZOO / "ceilings.json").read_text())
    ceilings.write_between_marks(page, "ceilings.py", ceilings.tables(content))
    assert page.read_text() == (ZOO / "README.md").read_text()


def test_specific_drops_are_those_beyond_the_mean_of_the_others(script):
    """Each task is judged against the mean loss of the others."""
    rated = script("zoo.ceilings").specific_drops(np.array([[0.5, 0.1, 0.3], [0.0, 0.0, -0.2]]))
    assert rated == pytest.approx(np.array([[0.3, -0.3, 0.0], [0.1, 0.1, -0.2]]))
