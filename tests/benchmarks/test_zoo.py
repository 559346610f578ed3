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
def zoo(script):
    """The module that loads the models of the zoo."""
    return script("zoo")


@pytest.fixture(scope="module")
def ceilings(script):
    """The script that searches for the best sets."""
    return script("zoo.ceilings")


@pytest.fixture(scope="module")
def workspace():
    """A workspace shared by the models, so that a task is built once for each tokenizer."""
    with broca.Workspace() as workspace:
        yield workspace


@pytest.mark.parametrize("name", NAMES)
def test_a_model_loads_and_has_the_stated_scores(zoo, workspace, name):
    """A model passes the self-test at load and has lm-eval's scores on the first items."""
    (entry,) = (model for model in zoo.models() if model.name == name)
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


def test_real_models_are_read_where_they_lie(zoo, tmp_path):
    """The task files name the data by path; a missing model is refused by name."""
    source, tasks = tmp_path / "source", tmp_path / "tasks"
    with pytest.raises(FileNotFoundError, match=zoo.REAL_MODEL):
        next(zoo.real_models(source, tasks))
    (source / "models" / zoo.REAL_MODEL).mkdir(parents=True)
    (source / "blimp").mkdir()
    pair = json.dumps({"sentence_good": "a dog runs", "sentence_bad": "a dog run"})
    for task in sum(zoo.REAL_TASKS.values(), ()):
        (source / "blimp" / f"{task}.jsonl").write_text(f"{pair}\n")
    develop, report = zoo.real_models(source, tasks)
    assert not set(develop.tasks) & set(report.tasks)
    for entry in (develop, report):
        assert entry.folder == source / "models" / zoo.REAL_MODEL
        for task in entry.tasks:
            text = (entry.include_path / f"{task}.yaml").read_text()
            assert str(source / "blimp" / f"{task}.jsonl") in text
    assert zoo.report_models(source, tasks) == [report, *zoo.models("report")]


class KnownLosses:
    """A `Bench` whose task 0 loses 0.4 by heads 2 and 5 together; all tasks lose 0.1 by head 7."""

    names = ("pair", "other", "another")
    components = range(9)

    def __init__(self, specific_drops):
        self.specific_drops = specific_drops

    def losses(self, sets, items):
        """Returns the mean loss of every task, `(sets, tasks)`."""
        own = [0.4 * ({2, 5} <= members) + 0.02 * (2 in members) for members in sets]
        shared = [0.1 * (7 in members) for members in sets]
        return np.stack([np.add(own, shared), shared, shared], axis=1)

    def specific(self, sets, task, items):
        """Returns the specific drop of a task, `(sets,)`."""
        return self.specific_drops(self.losses(sets, items))[:, task]


def test_searches_find_a_pair_that_only_works_together(ceilings):
    """The searches find a pair of which one head has little effect alone and the other none."""
    rated = ceilings.specific_drops(np.array([[0.5, 0.1, 0.3], [0.0, 0.0, -0.2]]))
    assert rated == pytest.approx(np.array([[0.3, -0.3, 0.0], [0.1, 0.1, -0.2]]))
    pair = frozenset({2, 5})
    bench = KnownLosses(ceilings.specific_drops)
    assert pair in ceilings.exhaustive(bench, 2)[0]
    assert any(pair <= members for members in ceilings.forward(bench, 0))
    assert ceilings.best(bench, 0, {pair, frozenset(), frozenset({7})}, 8, 1) == [pair]


def test_the_readme_has_the_tables_of_the_kept_sets(ceilings, tmp_path):
    """Writing the tables of the stored sets leaves the README unchanged."""
    page = tmp_path / "README.md"
    page.write_text((ZOO / "README.md").read_text())
    content = json.loads((ZOO / "ceilings.json").read_text())
    ceilings.write_between_marks(page, "ceilings.py", ceilings.tables(content))
    assert page.read_text() == (ZOO / "README.md").read_text()


def test_redundancy_is_what_single_drops_do_not_explain(ceilings):
    """Redundancy is 0 if single drops explain the set's drop and 1 if they are all 0."""
    assert ceilings.redundancy(0.5, 0.9) == 0.0
    assert ceilings.redundancy(0.5, 0.0) == 1.0
    assert ceilings.redundancy(0.8, 0.2) == pytest.approx(0.75)
    assert ceilings.redundancy(0.05, 0.0) is None
