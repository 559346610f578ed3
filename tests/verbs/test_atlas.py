"""`broca.atlas` on the shipped models: planted sets, resumption and refusals."""

import numpy as np
import pytest
from capabilities import LEARNED
from journals import totals
from verbs.measuring import untimed

import broca
from broca.errors import BadInput, NothingToLocalize, UnknownName
from broca.searches import run
from broca.searches.atlas import AtlasProblem, measure_atlas
from broca.store import Journal, Replay, find_run, restored

FEW = {"tasks": "rhyming,capitals", "rows": 400, "items": 20}


@pytest.fixture(scope="module")
def atlas(planted):
    """An atlas of the six capabilities that `planted` has learned."""
    return broca.atlas(planted, tasks=list(LEARNED), rows=3000, items=50)


def test_matrix_shows_each_planted_set_under_its_capability(atlas, planted_heads):
    """A planted set has its capability's largest contrasts; the median other effect is small."""
    effects = {
        task.name: dict(zip(atlas.components, row, strict=True))
        for task, row in zip(atlas.tasks, atlas.effects, strict=True)
    }
    for task, capability in LEARNED.items():
        own_heads = set(planted_heads[capability])
        contrast = {
            head: effects[task][head]
            - np.mean([effects[other][head] for other in LEARNED if other != task])
            for head in atlas.components
        }
        assert set(sorted(contrast, key=contrast.get)[: len(own_heads)]) == own_heads
        others = [value for head, value in effects[task].items() if head not in own_heads]
        assert np.median(np.abs(others)) < 0.05


def test_selections_are_planted(atlas, planted_heads):
    """At least 85 % of the planted heads are selected, and at most one other head."""
    planted = {(task, head) for task, name in LEARNED.items() for head in planted_heads[name]}
    selected = {(task, head) for task in LEARNED for head in atlas.selected(task)}
    assert len(selected & planted) >= 0.85 * len(planted)
    assert len(selected - planted) <= 1


def test_nothing_is_universal_and_clusters_are_the_sets(atlas, planted_heads):
    """No head is universal, and each cluster has heads of one capability."""
    assert atlas.universal == ()
    owner = {head: name for name, heads in planted_heads.items() for head in heads}
    for cluster in atlas.clusters:
        assert len({owner[head] for head in cluster.components if head in owner}) <= 1
    assert all(len(tasks) == 1 for tasks in atlas.task_clusters)


def test_cells_lie_in_their_intervals_and_budget_is_kept(atlas):
    """Every effect lies between its bounds; the number of rows is the budget."""
    assert np.all(np.array(atlas.low) <= np.array(atlas.effects))
    assert np.all(np.array(atlas.effects) <= np.array(atlas.high))
    assert 3000 - len(LEARNED) < atlas.cost.rows <= 3000
    assert atlas.response == "probability"
    assert not atlas.shrunk


def test_journal_answers_the_second_time(planted, tmp_path):
    """A second call measures nothing, and the search is repeated from the journal alone."""
    journal = tmp_path / "journal.sqlite"
    first = broca.atlas(planted, **FEW, journal=journal)
    assert first.cost.measured > 0
    before = totals(journal)
    second = broca.atlas(planted, **FEW, journal=journal)
    with Journal(journal, read_only=True) as opened:
        recorded = find_run(opened, None)
        search = measure_atlas(restored(recorded.search["problem"], AtlasProblem))
        chart = run(search, Replay(opened, recorded.id).run)
    assert totals(journal) == before
    assert untimed(second) == untimed(first)
    column = planted.components.names.index(first.components[0])
    row = chart.tasks.index(first.tasks[0].name)
    assert chart.joint.effects[row, column] == first.effects[0][0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"tasks": "rhyming,capitlas"}, UnknownName, "did you mean 'capitals'"),
        ({"tasks": "rhyming"}, BadInput, "two tasks or more, not 1: .* `broca localize`"),
        ({"tasks": ""}, BadInput, "two tasks or more, not 0"),
        ({"tasks": "rhyming,capitals", "rows": 399}, BadInput, "too few for an atlas of 2 tasks"),
        ({"k": 0}, BadInput, "`k` must be at least 1"),
        ({"response": "loss"}, BadInput, "`response` 'loss' is unknown"),
    ],
)
def test_bad_input(planted, arguments, error, message):
    """Unknown tasks, too few tasks or rows and bad options are refused before any measurement."""
    stages = []
    with pytest.raises(error, match=message):
        broca.atlas(planted, **arguments, on_progress=lambda stage, _: stages.append(stage))
    assert "scoring the intact model" not in stages


def test_a_model_without_tasks_of_its_own(tiny):
    """A model that can do none of the tasks is refused, and `auto` finds none for it."""
    with pytest.raises(NothingToLocalize, match="none of the 2 tasks"):
        broca.atlas(tiny, tasks="rhyming,capitals", rows=400, items=8)
    with pytest.raises(BadInput, match="not 0: name more in `tasks`, or a folder"):
        broca.atlas(tiny)
