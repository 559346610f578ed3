"""All models are measured on the rows of the first model."""

from contextlib import contextmanager

import numpy as np
import pytest

from broca.comparisons.collecting import Collection
from broca.comparisons.estimating import discoveries, estimate_effects
from broca.comparisons.subjects import ComparedSubject
from broca.engine import Ablation
from broca.errors import BadInput
from broca.models import GatedModel
from broca.results.comparison import ComparedSelection
from broca.runs.progress import Stages
from broca.runs.run import Run
from broca.runs.task_sets import load_tasks, split_tasks
from broca.runs.workspace import Workspace
from broca.tasks import Catalog, Task
from broca.testing import tiny_llama, tiny_tokenizer

ROWS, ITEMS = 80, 12
SELECTIONS = (ComparedSelection("given", None, None, ("L0H1",)),)


def tiny(seed, layers=2):
    """Returns a tiny model."""
    return GatedModel.wrap(
        tiny_llama(seed=seed, layers=layers), tiny_tokenizer(), name=f"tiny{seed}"
    )


def choices(count):
    """Returns a task of two choices with `count` items."""
    return Task.from_examples(
        [
            {"prompt": f"{number} is", "choices": [" even", " odd"], "label": number % 2}
            for number in range(count)
        ],
        name="parity",
    )


@contextmanager
def run_on(model, task, items=ITEMS, stages=None):
    """Yields a run on some items of a task."""
    catalog = Catalog()
    benchmarks = load_tasks(model, [catalog.name_of(task)], catalog)
    with Workspace(None) as space:
        tasks = split_tasks(benchmarks, items=items, seed=0, limit=20)
        yield Run(model, tasks, space, settings={"test": "collection"}, stages=stages or Stages())


def collect(models, task, response=None, stages=None):
    """Returns a collection of models that are measured one after the other."""
    collection = Collection([model.name for model in models])
    for model in models:
        collection.require_components(model, model.name)
        with run_on(model, task, stages=stages) as run:
            collection.measure(run, model.name, SELECTIONS, ROWS, 3, response)
    return collection


@pytest.fixture(scope="module")
def collection():
    """A collection of two models of one architecture."""
    return collect([tiny(0), tiny(1)], choices(60))


def test_every_model_answers_the_first_ones_rows(collection):
    """The default response is the probability of the right choice."""
    assert [label for label, _ in collection.models] == ["tiny0", "tiny1"]
    assert collection.design.masks.shape == (ROWS, len(collection.components))
    assert collection.response == "probability"
    assert collection.selections == SELECTIONS
    changes = [measured.changes["parity"] for _, measured in collection.models]
    assert [vector.shape for vector in changes] == [(ROWS,)] * 2
    assert not np.allclose(*changes)


def test_progress_is_that_of_all_models():
    """A single bar counts the rows of both models and never goes back."""
    reports = []
    stages = Stages(lambda stage, progress: reports.append((stage, progress)))
    collect([tiny(0), tiny(1)], choices(60), stages=stages)
    under = [progress for stage, progress in reports if progress and "random masks" in stage]
    rows = ITEMS + ROWS + (1 + len(SELECTIONS)) * 20
    assert {progress.total for progress in under} == {2 * rows}
    done = [progress.done for progress in under]
    assert done == sorted(done)
    assert rows < done[-1] <= 2 * rows
    assert stages._forecast.outlook().done == 2 * rows


def test_effects_and_differences_are_those_of_one_regression(collection):
    """The comparison contains the estimates with their intervals."""
    subjects = [ComparedSubject("tiny0", "tiny0"), ComparedSubject("tiny1", "tiny1", revision="b")]
    comparison = collection.compared(subjects, Ablation("zero", 0.25), level=0.1, seed=5)
    design = collection.design
    first, second = (measured.changes["parity"] for _, measured in collection.models)
    expected = estimate_effects(design.masks, first, design.items["parity"])
    assert comparison.effects[0].effects == pytest.approx(expected.values)
    assert comparison.effects[0].low == pytest.approx(expected.intervals(0.1)[0])
    (line,) = comparison.differences
    change = estimate_effects(design.masks, second - first, design.items["parity"])
    assert (line.model, line.task) == ("tiny1", "parity")
    assert line.differences == pytest.approx(change.values)
    assert line.q == pytest.approx(discoveries(change.p_values()))
    assert set(line.changed) == {
        name for name, q in zip(comparison.components, line.q, strict=True) if q <= 0.1
    }
    assert [model.revision for model in comparison.models] == [None, "b"]
    assert (comparison.ablation.kind, comparison.ablation.scale) == ("zero", 0.25)
    assert (comparison.items, comparison.report_items) == ({"parity": ITEMS}, {"parity": 20})
    assert {score.selection for score in comparison.scores} == {None, "given"}


def test_other_architectures_are_refused(collection):
    """A model with other components than the first is refused by name."""
    with pytest.raises(BadInput, match=r"'deep' has .* only models of one architecture"):
        collection.require_components(tiny(0, layers=3), "deep")


def test_a_model_with_fewer_items_is_refused():
    """A model that lacks items of the rows is refused."""
    model = tiny(0)
    collection = collect([model], choices(60))
    with (
        run_on(model, choices(60), items=6) as run,
        pytest.raises(BadInput, match="has 6 items for 'second' and more for the first model"),
    ):
        collection.measure(run, "second", SELECTIONS, ROWS, 3, None)


def test_generated_answers_are_compared_by_accuracy():
    """Generated answers are compared by accuracy; other responses of them are refused."""
    task = Task.from_examples(
        [{"prompt": f"{number} and", "answer": " x"} for number in range(60)], name="words"
    )
    collection = collect([tiny(0)], task)
    assert collection.response == "accuracy"
    assert any("tiny0 is at chance on words" in note for note in collection.notes)
    with pytest.raises(BadInput, match="`response` margin of 'words' would compare each model"):
        collect([tiny(0)], task, response="margin")
