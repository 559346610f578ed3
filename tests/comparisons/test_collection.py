"""All models are measured on the rows of the first; selections are tried on all of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from tiny import tiny_gated

from broca import Run, Workspace
from broca.comparisons.collection import Collection
from broca.comparisons.measurements import estimate_effects
from broca.comparisons.subjects import ComparedSubject
from broca.engine import Ablation
from broca.errors import BadInput
from broca.results.comparison import ComparedSelection
from broca.runs.progress import Stages
from broca.runs.task_sets import equal_tasks, load_tasks
from broca.tasks import Catalog, Task

ROWS, ITEMS = 80, 12
SELECTIONS = (ComparedSelection("given", None, None, ("L0H1",)),)


CHOICE = {"choices": [" even", " odd"]}
PARITY = Task.from_examples(
    [CHOICE | {"prompt": f"{n} is", "label": n % 2} for n in range(60)], name="parity"
)


@pytest.fixture(scope="module")
def collected():
    """A collection of two models of one architecture, and the progress that it reported."""
    models = [tiny_gated(f"tiny{seed}", seed=seed) for seed in (0, 1)]
    subjects = [ComparedSubject(model.name, model, revision=f"of {model.name}") for model in models]
    collection = Collection(subjects, SELECTIONS, ROWS, seed=3)
    reports, catalog = [], Catalog()
    stages = Stages(lambda stage, progress: reports.append((stage, progress)))
    for model in models:
        collection.require_components(model.components.names, model.name)
        benchmarks = load_tasks(model, [catalog.name_of(PARITY)], catalog)
        with Workspace(None) as space:
            tasks = equal_tasks(benchmarks, "locate", "report", items=ITEMS, seed=0, limit=20)
            run = Run(model, tasks, space, settings={"test": "collection"}, stages=stages)
            collection.measure(run, model.name)
    return collection, reports


def test_progress_is_that_of_all_models(collected):
    """A single bar counts the rows of both models and never goes back."""
    _, reports = collected
    under = [progress for stage, progress in reports if progress and "random masks" in stage]
    done = [progress.done for progress in under]
    assert done == sorted(done)
    assert done[-1] > 2 * (ROWS + ITEMS)
    assert all(progress.done <= progress.total for progress in under)


def test_a_selection_among_other_components_is_refused_by_name():
    """Heads that a run selected are not compared with layers."""
    collection = Collection([], (ComparedSelection("run", "tiny", "parity", ("L0H1",)),))
    with pytest.raises(BadInput, match="L0H1 of 'run' is none of the 2 components to L1"):
        collection.require_components(("L0", "L1"), "tiny")


def test_effects_and_differences_are_those_of_one_regression(collected):
    """The comparison contains the estimates with their intervals."""
    collection, _ = collected
    comparison = collection.compared(Ablation("zero", 0.25), level=0.1)
    design = collection.design
    assert (design.masks.shape, design.response) == ((ROWS, 8), "probability")
    first, second = (measured.changes["parity"] for measured in collection.models.values())
    assert not np.allclose(first, second)
    expected = estimate_effects(design.masks, first, design.items["parity"])
    assert comparison.effects[0].effects == pytest.approx(expected.values)
    assert comparison.effects[0].low == pytest.approx(expected.with_ends(0.1)[1])
    (line,) = comparison.differences
    change = estimate_effects(design.masks, second - first, design.items["parity"])
    assert (line.model, line.task) == ("tiny1", "parity")
    assert line.differences == pytest.approx(change.values)
    assert line.q == pytest.approx(stats.false_discovery_control(change.p_values()))
    assert set(line.changed) == {
        name for name, q in zip(comparison.components, line.q, strict=True) if q <= 0.1
    }
    assert [model.revision for model in comparison.models] == ["of tiny0", "of tiny1"]
    assert (comparison.ablation.kind, comparison.ablation.scale) == ("zero", 0.25)
    assert (comparison.items, comparison.report_items) == ({"parity": ITEMS}, {"parity": 20})


def test_the_same_weights_may_answer_otherwise(collected):
    """With another tokenizer the same weights have differences; equal answers have none."""
    first, second = collected[0].models.values()
    same = replace(second, info=replace(second.info, fingerprint=first.info.fingerprint))
    for other, count in ((same, 1), (first, 0)):
        both = replace(collected[0], models={"tiny0": first, "tiny1": other})
        assert len(both.compared(Ablation(), level=0.1).differences) == count


COUNT = 400


def answers(share, seed=0):
    """Returns right and wrong answers, about `share` of them right."""
    return (np.random.default_rng(seed).random(COUNT) < share).astype(float)


TRIAL = SimpleNamespace(
    aggregation=lambda task, values: None, score=lambda task, values: float(np.mean(values))
)
"""A trial whose scores are means."""


def measured(weights="b", **tasks):
    """Returns a model's answers by task: intact, and without each selection."""
    reported = {task: np.stack(rows) for task, rows in tasks.items()}
    info = SimpleNamespace(fingerprint=weights)
    return SimpleNamespace(reported=reported, trial=TRIAL, info=info)


def among(models, selections):
    """Returns a collection of measured models."""
    return Collection((), selections, models=models)


INTACT = np.ones(COUNT)
TWO = (
    ComparedSelection("a's", "a", "adding", ("L0H0",)),
    ComparedSelection("b's", "b", "adding", ("L0H1",)),
)


def test_scores_are_means_and_drops_have_intervals():
    """Every selection has a score and a drop; the intact model has only a score."""
    rows = (INTACT, answers(0.4), answers(0.9))
    lines = among({"a": measured(adding=rows)}, TWO).scores(0.05)
    assert [line.selection for line in lines] == [None, "a's", "b's"]
    assert [line.score for line in lines] == [row.mean() for row in rows]
    assert lines[0].drop is None
    assert lines[1].drop.value == pytest.approx(1 - rows[1].mean())
    assert lines[1].drop.low < lines[1].drop.value < lines[1].drop.high


@pytest.mark.parametrize(
    ("score", "own", "answer"),
    [(0.3, 0.2, "yes"), (0.8, 0.2, "in part"), (1.0, 0.2, "no"), (0.99, 0.2, "no"),
     (0.99, 0.97, "undecided")],
)  # fmt: skip
def test_another_selection_is_needed_if_it_costs_half_of_the_own_one(score, own, answer):
    """A's selection carries over to B if it costs B half of what B's costs, unless both are few."""
    reported = measured(adding=(INTACT, answers(score, 1), answers(own, 2)))
    (line,) = among({"b": reported}, TWO).carries(0.05)
    assert (line.selection, line.model, line.own_selection) == ("a's", "b", "b's")
    lost = [1 - answers(*drawn).mean() for drawn in ((score, 1), (own, 2))]
    assert line.share.value == pytest.approx(lost[0] / lost[1])
    assert line.share.high - line.share.low < (0.2 if own == 0.2 else 2)
    assert line.carried == answer


def test_a_share_of_equal_losses_is_as_unsure_as_the_drop():
    """Eight items that both selections cost leave open as much as eight equal items do."""
    lost = 1.0 * (np.arange(COUNT) >= 8)
    (line,) = among({"b": measured(adding=(INTACT, lost, lost))}, TWO).carries(0.05)
    assert line.share.low < 0.025 ** (1 / 8) < line.share.value == 1


def test_a_model_without_a_selection_is_judged_by_its_loss():
    """Without one, a loss of the score gives "yes", be it of weighty items; none "undecided"."""
    only, places = TWO[:1], np.arange(COUNT)
    model = measured(adding=(1.0 * (places >= 8), 1.0 * (places < COUNT - 8)))  # eight for eight
    model.trial = SimpleNamespace(
        aggregation=lambda *_: lambda values, drawn: float(np.average(values, weights=drawn + 1))
    )
    (lost,) = among({"b": model}, only).carries(0.05)
    assert (lost.carried, lost.own_selection, lost.share) == ("yes", None, None)
    (undamaged,) = among({"b": measured(adding=(INTACT, INTACT))}, only).carries(0.05)
    assert undamaged.carried == "undecided"


def test_a_selection_is_not_tried_where_it_was_found():
    """A selection is tried only on its task in other weights; p-values of lines are Holm's."""
    rows = (INTACT, answers(0.97), answers(0.97))
    models = {name: measured(name, adding=rows, other=rows) for name in ("a", "b")}
    lines = among(models, TWO).carries(0.05)
    assert {(line.selection, line.model, line.task) for line in lines} == {
        ("b's", "a", "adding"), ("a's", "b", "adding"),
    }  # fmt: skip
    (alone,) = among({"b": measured(adding=rows)}, TWO).carries(0.05)
    assert [line.p for line in lines] == pytest.approx([2 * alone.p] * 2)
    copied = {name: measured(adding=rows) for name in ("a", "copy of a")}
    assert among(copied, TWO[:1]).carries(0.05) == ()
