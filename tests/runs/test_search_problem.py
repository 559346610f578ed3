"""The problem that a search solves in a run."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from claims import claimed

import broca
from broca.errors import BadInput, UnknownName
from broca.measurement import Plan
from broca.options import LocalizeOptions, SearchOptions, TaskOptions
from broca.runs.run import Run
from broca.runs.search import measured_places, method_of, problem_of, searching_run
from broca.runs.task_sets import TaskSet
from broca.runs.workspace import Workspace
from broca.searches import DEFAULT_METHOD


@pytest.fixture(scope="module")
def tasks(reference):
    """A task and one other task, with 12 items to locate on."""
    options = TaskOptions(limit=60)
    claim = {"others": ["capitals"], "items": 12, "seed": 0}
    return claimed(reference, "sorting", **claim, task_options=options)


def test_a_recovery_decides_the_method_where_none_is_named():
    """Without a method the default or the recovery's method is used; wrong names are refused."""
    assert method_of(SearchOptions()) == DEFAULT_METHOD
    assert method_of(SearchOptions(options={"recovery": "ridge"})) == "cs-stratified"
    assert method_of(SearchOptions(method="one-shot")) == "one-shot"
    with pytest.raises(UnknownName, match="did you mean 'greedy'"):
        method_of(SearchOptions(method="gredy"))
    with pytest.raises(BadInput, match="sparsity"):
        method_of(SearchOptions(method="cs-fresh", options={"sparsty": 1}))


@pytest.mark.parametrize("continuous", [True, False])
def test_a_problem_has_the_items_and_the_budget(reference, tasks, continuous):
    """The problem has items, others and budget, and whether rows have margins and gradients."""
    places = measured_places("pooled", tasks, SearchOptions())
    assert list(places) == ["sorting", "capitals"]
    options = SearchOptions(k=3, rows=700)
    problem = problem_of(reference, tasks, places, options, seed=5, continuous=continuous)
    assert (problem.components, problem.k, problem.rows, problem.seed) == (96, 3, 700, 5)
    np.testing.assert_array_equal(problem.items, tasks.places["locate"]["sorting"])
    np.testing.assert_array_equal(problem.confirm, tasks.places["confirm"]["sorting"])
    (other,) = problem.others
    assert other.name == "capitals"
    np.testing.assert_array_equal(other.items, places["capitals"])
    assert problem.continuous == problem.differentiable == continuous


def test_margins_of_several_tasks_are_not_compared(tasks):
    """A method that weighs other tasks refuses margins; one that does not measures them."""
    margin = SearchOptions(response="margin")
    assert list(measured_places("one-shot", tasks, margin)) == ["sorting"]
    alone = SearchOptions(options={"contrast": 0.0})
    assert list(measured_places("pooled", tasks, alone)) == ["sorting"]
    for method, options in (("pooled", {}), ("pooled", alone.options), ("coar", {"contrast": 1.0})):
        with pytest.raises(BadInput, match="margins of tasks are not comparable"):
            measured_places(method, tasks, replace(margin, options=options))


def test_one_task_in_a_stated_response_is_not_taken_for_comparable(reference, tasks):
    """With a stated response, a single task's problem is not continuous."""
    places = measured_places("one-shot", tasks, SearchOptions())  # it compares with no other task
    assert list(places) == ["sorting"]
    for response, expected in ((None, True), ("margin", False)):
        options = SearchOptions(response=response)
        problem = problem_of(reference, tasks, places, options, seed=0, continuous=True)
        assert problem.continuous is expected


def test_neutral_text_is_read_where_components_are_many():
    """The response of a sentence is its mean log-probability; a model of few heads reads none."""
    counts = []
    for components in ("heads", "neurons"):
        model = broca.load("reference-small", device="cpu", components=components)
        options = LocalizeOptions.of({"model": model, "task": "capitals", "others": ["sorting"]})
        run = searching_run(Run(model, TaskSet(), Workspace()), options, "pooled", seed=0)
        counts.append(len(run.tasks.texts))
    assert counts == [0, 28]
    last = run.tasks.texts[-1]
    intact = Plan.crossed(run.mask(())[None], np.array([last]), response="margin")
    (request,) = run.bank[last][0].margin(run.bank[last][1]).requests
    tokens = torch.tensor([[*request.context, *request.continuation]])
    logits = model.model(tokens).logits[0, len(request.context) - 1 : -1].log_softmax(-1)
    expected = logits[range(len(logits)), list(request.continuation)].mean().item()
    assert run.measure(intact).responses == pytest.approx([expected], abs=1e-5)
