"""The problem of a search on a run: its items, its budget and its response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broca import searches
from broca.errors import BadInput
from broca.models import GatedModel
from broca.options import SearchOptions
from broca.runs.references import Referenced
from broca.runs.run import Run, shared_tokens
from broca.runs.task_sets import TaskSet
from broca.searches import OtherTask, Problem
from broca.verification.trial import Places


def method_of(options: SearchOptions) -> str:
    """Returns the method of a search; the recovery determines it if no method is named.

    Raises:
        UnknownName: No method has this name.
        BadInput: The method has no such option, or the option has an invalid value.
    """
    method = options.method
    if method is None:
        method = "cs-stratified" if "recovery" in options.options else searches.DEFAULT_METHOD
    searches.require_method(method).strategy(options.options)
    return method


def measured_places(method: str, tasks: TaskSet, options: SearchOptions) -> Places:
    """Positions of the `locate` items that a method measures, by task; the task's own first."""
    weighs = searches.require_method(method).weighs_others(options.options)
    others = tasks.others if weighs else ()
    names = (tasks.task, *others)
    return {name: tasks.places["locate"][name] for name in names}


def refer(method: str, options: SearchOptions, run: Run) -> Referenced:
    """Finds the reference answers that the method's response needs.

    Raises:
        TaskUnusable: No item has a reference answer, and the method or the user requires one.
    """
    response: Any = options.response
    record = searches.require_method(method)
    accuracy_will_do = response is None and not record.needs_gradients
    return run.referenced(
        response or record.response,
        measured_places(method, run.tasks, options),
        otherwise="the search measures the tasks' own metrics" if accuracy_will_do else None,
    )


def require_selection(k: int, model: GatedModel) -> None:
    """Refuses to select more components than a model has.

    Raises:
        BadInput: `k` is larger than their number.
    """
    if k > len(model.components):
        raise BadInput(
            f"`k` {k} is more than the {len(model.components)} {model.kinds} of the model"
        )


def problem_of(
    model: GatedModel,
    tasks: TaskSet,
    places: Mapping[str, Any],
    options: SearchOptions,
    *,
    seed: int,
    continuous: bool,
) -> Problem:
    """Returns the problem that a search solves.

    Args:
        model: The model whose components are searched.
        tasks: The tasks and their items.
        places: Positions of each measured task's usable `locate` items.
        options: The budget and the size of the selection.
        seed: Seed of the search.
        continuous: Whether every one of these items has a margin.
    """
    require_selection(options.k, model)
    confirm = tasks.places["confirm"]
    task, *others = (OtherTask(name, items, confirm[name]) for name, items in places.items())
    return Problem(
        components=len(model.components),
        items=task.items,
        k=options.k,
        rows=options.rows,
        seed=seed,
        confirm=task.confirm,
        others=tuple(others),
        continuous=continuous and (len(places) > 1 or options.response is None),
        differentiable=continuous and model.differentiable,
        **shared_tokens([tasks.bank[position][1] for position in task.items]),
    )


def require_search(method: str, options: SearchOptions, model: GatedModel, tasks: TaskSet) -> None:
    """Refuses a budget or options that the method would refuse, before anything is measured.

    Properties that only measuring shows, such as whether every item has a margin, are assumed to
    hold.

    Raises:
        BadInput: The method refuses them.
    """
    places = measured_places(method, tasks, options)
    problem = problem_of(model, tasks, places, options, seed=0, continuous=True)
    searches.require_method(method).require(problem, options.options)
