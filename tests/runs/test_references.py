"""Rows are asked for margins where right answers are known, else for the tasks' metrics."""

import pytest

from broca.engine import Engine
from broca.errors import TaskUnusable
from broca.runs.references import with_margins
from broca.runs.task_sets import lay_out, load_tasks
from broca.tasks import Catalog, TaskOptions

TASKS = ("addition", "mc_biology")


def laid_out(model):
    """A bank of two tasks' locate items, and their places."""
    benchmarks = load_tasks(model, TASKS, Catalog(), options=TaskOptions(limit=40))
    splits = {name: one.split(items=6, seed=0) for name, one in benchmarks.items()}
    bank, places = lay_out(benchmarks, splits, {"locate": TASKS})
    return bank, places["locate"]


def ask(model, response, otherwise):
    """What rows are asked for, and what there was to ask."""
    bank, places = laid_out(model)
    asked = with_margins(
        response, Engine(model), bank, places,
        components=len(model.components), otherwise=otherwise,
    )  # fmt: skip
    return asked, bank, places


def test_items_with_a_right_answer_have_margins(reference):
    """The intact model does these tasks: the bank knows its answers, in the same places."""
    asked, bank, places = ask(reference, "probability", None)
    assert (asked.response, asked.continuous) == ("probability", True)
    assert [item for _, item in asked.bank] == [item for _, item in bank]
    for name, own in asked.places.items():
        assert set(own.tolist()) <= set(places[name].tolist())
        assert len(own) > 0
        for position in own:
            benchmark, item = asked.bank[position]
            assert benchmark.name == name
            assert benchmark.margin(item) is not None


def test_accuracy_needs_no_right_answers(tiny):
    """Nothing is looked for: all items stay, whatever the model can do."""
    asked, bank, places = ask(tiny, "accuracy", None)
    assert (asked.bank, asked.response, asked.continuous, asked.notes) == (
        bank, "accuracy", False, (),
    )  # fmt: skip
    assert all((asked.places[name] == own).all() for name, own in places.items())


def test_without_right_answers_accuracy_is_asked_and_noted(tiny):
    """A random model answers nothing right: the note says what was done and why."""
    asked, bank, _ = ask(tiny, "margin", "metrics are measured")
    assert (asked.bank, asked.response, asked.continuous) == (bank, "accuracy", False)
    (note,) = asked.notes
    assert note.startswith("metrics are measured: ")
    assert "addition" in note


def test_without_right_answers_a_wanted_margin_is_refused(tiny):
    """Where nothing else will do."""
    with pytest.raises(TaskUnusable, match="addition"):
        ask(tiny, "margin", None)
