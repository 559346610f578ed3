"""The answers of the default search on the zoo: tasks with drawn labels, kinds and the table."""

import pytest

import broca
from broca.options import SourceOptions
from broca.runs.task_sets import load_tasks, whole_tasks


@pytest.fixture(scope="module")
def answers(script):
    """The script `benchmarks/zoo/answers.py` as a module."""
    return script("zoo.answers")


def test_labels_are_drawn_anew(answers):
    """About half of the labels and of the sentence pairs change; nothing else does."""
    choices = [{"prompt": str(n), "choices": ["a", "b"], "label": 0} for n in range(400)]
    drawn = list(answers.drawn_labels(choices))
    assert 150 < sum(line["label"] for line in drawn) < 250
    assert [line | {"label": 0} for line in drawn] == choices
    pairs = [{"sentence_good": "yes", "sentence_bad": "no"}] * 400
    drawn = list(answers.drawn_labels(pairs))
    assert 150 < sum(line["sentence_good"] == "no" for line in drawn) < 250
    assert all(set(line.values()) == {"yes", "no"} for line in drawn)


@pytest.mark.long
def test_tasks_with_drawn_labels_can_be_built(answers, script, tmp_path):
    """Every multiple-choice task of a model has a second task, which lm-eval builds."""
    (entry,) = (model for model in script("zoo").models() if model.name == "neox-32")
    extended, permuted = answers.with_permuted(entry, tmp_path / "tasks")
    assert permuted == tuple(
        f"zoo_{name}_permuted" for name in ("larger", "membership", "reflexive")
    )
    model = broca.load(extended.folder)
    with broca.Workspace() as workspace:
        catalog = workspace.catalog(SourceOptions(include_path=extended.include_path))
        tasks = whole_tasks(load_tasks(model, (*permuted, *extended.tasks), catalog))
    assert {len(tasks.places["report"][name]) for name in permuted} == {800}


def test_the_table_counts_answers_by_kind(answers):
    """Kinds follow the best set known; a task without one is in no line."""
    best_drops = {("m", "large"): 0.3, ("m", "between"): 0.07, ("m", "idle"): 0.01}

    def search(task, answer, **fields):
        return answers.Search("m", task, 4800, 0, answer, **fields)

    listed = [
        search("large", "found", verdict="specific", specific_drop=0.25),
        search("large", "nothing", bound=0.04),
        search("idle", "found", verdict="partly specific", specific_drop=0.02),
        search("idle", "nothing", bound=0.02),
        search("idle_permuted", "refused"),
        search("unknown", "nothing"),
    ]
    kinds = [line.kind(best_drops) for line in listed]
    assert kinds == ["large"] * 2 + ["none"] * 2 + ["permuted", None]
    lines = answers.table(listed, best_drops).splitlines()[2:]
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in lines}
    assert cells[answers.KINDS["large"]] == ["2", "1", "1", "0", "0", "1", "1", "1"]
    assert cells[answers.KINDS["small"]] == ["0"] * 8
    assert cells[answers.KINDS["none"]] == ["2", "1", "1", "0", "0", "0", "1", "0"]
    assert cells[answers.KINDS["permuted"]] == ["1", "0", "0", "0", "1", "0", "0", "0"]
