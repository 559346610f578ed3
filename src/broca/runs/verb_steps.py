"""The rows that a verb is going to measure, step by step, before it begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from broca import searches
from broca.models import GatedModel
from broca.options import SearchOptions
from broca.runs.forecast import Step
from broca.runs.problems import measured_places, method_of, problem_of
from broca.runs.run import tokens_of
from broca.runs.task_sets import TaskSet, claim_tasks
from broca.runs.timing import count_rows
from broca.verification import QUICK, Scope, Trial
from broca.verification.trial import Places

INTACT, REFERENCES = "scoring the intact model", "looking for right answers"
"""Stages that several verbs have."""

AGAIN = "searching again, on other items"
"""The stage of the searches that tell how stable the first one is."""

SEARCH, SETS = "search", "sets"
"""Kinds of rows besides scores: rows of searches, and rows of many sets on the same items, which
share work."""

ANY_SPEED = {"accuracy": 1.0, "probability": 1.0}
"""Rows are counted, not timed."""


def localization_steps(
    model: GatedModel,
    tasks: TaskSet,
    method: str,
    options: SearchOptions,
    verify: bool,
    interactions: int,
    seeds: int = 1,
) -> list[Step]:
    """The steps of a localization, each with the maximum number of rows that is expected.

    Two numbers are unknown beforehand: random sets are doubled if few of them reach the real set,
    and components that the others need too are ablated alone.

    Args:
        model: The model whose components are searched.
        tasks: The tasks and their items.
        method: The method of the search.
        options: The budget of the search.
        verify: Whether it ends with statistics, random sets and a verdict.
        interactions: Number of components that are ablated in pairs.
        seeds: Number of searches.
    """
    trial, places = tasks.trial(), measured_places(method, tasks, options)
    report = _count(trial.places)
    wants_answers = (options.response or searches.require_method(method).response) != "accuracy"
    pairs = (1 + interactions + interactions * (interactions - 1) // 2) if interactions else 0
    search = search_rows(model, tasks, method, options)
    return [
        Step(INTACT, report),
        Step(REFERENCES, seeds * _answers(tasks, places) if wants_answers else 0),
        Step(f"searching ({method})", search, SEARCH),
        Step("verifying on the report items", report),
        *(_examination_steps(trial, QUICK, members=options.k) if verify else ()),
        Step("ablating alone what the others need too", 0, SETS),
        Step("measuring pairs", pairs * len(tasks.places["confirm"][tasks.task]), SETS),
        Step(AGAIN, (seeds - 1) * search, SEARCH),
    ]


def verification_steps(
    tasks: TaskSet,
    scope: Scope,
    members: Sequence[str],
    order: Sequence[str],
    ablations: Sequence[str],
) -> list[Step]:
    """The steps of a verification.

    Args:
        tasks: The tasks and their items.
        scope: Which tests are made, and on how many items.
        members: The components of the set.
        order: The components of the curve, in their order.
        ablations: Kinds of ablation under which the claim is tested, the run's included.
    """
    trial = tasks.trial()
    report, places = _count(trial.places), _control_places(trial, scope)
    compared = _count({name: places[name] for name in (trial.task, *trial.others)})
    curve = (min(scope.curve, len(order)) + 1) * _count(places) + 2 * len(ablations) * compared
    return [
        Step(INTACT, report),
        Step("verifying: the drops", report),
        *_examination_steps(trial, scope, members=len(members)),
        Step("verifying: k from 0 on", curve if scope.curve else 0, SETS),
    ]


def localizing_stage(task: str) -> str:
    """The stage in which a verification localizes a task of the same capability."""
    return f"localizing {task}"


def crossing_stage(task: str) -> str:
    """The stage that measures the components selected for another task on the claimed task."""
    return f"verifying: the selection for {task}"


def both_ways_steps(
    model: GatedModel, tasks: TaskSet, options: SearchOptions, *, seed: int
) -> list[Step]:
    """The steps that localize every same-skill task and measure its selection on the claimed task.

    Args:
        model: The model.
        tasks: The tasks of the claim and their items.
        options: The method and the budget of each localization.
        seed: Seed of the localizations.
    """
    measured = 2 * len(tasks.places["report"][tasks.task])  # intact and ablated
    steps = []
    for name in tasks.same_skill:
        claim = claim_tasks(name, {name: tasks.benchmarks[name]}, items=options.items, seed=seed)
        localization = localization_steps(
            model, claim, method_of(options), options, verify=False, interactions=0
        )
        rows = sum(step.rows for step in localization)
        steps.append(Step(localizing_stage(name), rows, "localization", verb=True))
        steps.append(Step(crossing_stage(name), measured))
    return steps


def atlas_steps(tasks: TaskSet, stage: str, *, rows: int, answers: bool) -> list[Step]:
    """The steps of an atlas.

    Args:
        tasks: The tasks and their items.
        stage: The stage that measures under random masks.
        rows: Number of rows of this stage.
        answers: Whether its response needs reference answers.
    """
    places = tasks.places["locate"]
    return [
        Step(INTACT, _count(places)),
        Step(REFERENCES, _answers(tasks, places) if answers else 0),
        Step(stage, rows, SEARCH),
    ]


def _examination_steps(trial: Trial, scope: Scope, *, members: int) -> Iterable[Step]:
    places, report_items = _control_places(trial, scope), len(trial.places[trial.task])
    compared = _count({name: places[name] for name in (trial.task, *trial.others)})
    member_items = min(scope.member_items or report_items, report_items)
    yield Step("verifying: random sets", 2 * scope.controls * compared, SETS)
    elsewhere = _count({name: places[name] for name in trial.names if name != trial.task})
    rows = members * (2 * member_items + elsewhere) if members > 1 else 0
    yield Step("verifying: each member", rows, SETS)
    shown = members * scope.changes if scope.failure_items else 0
    yield Step("verifying: the outputs", 2 * (_count(trial.at_most(scope.failure_items)) + shown))


def _control_places(trial: Trial, scope: Scope) -> Mapping[str, NDArray[np.intp]]:
    """Returns the positions of the items that are measured under controls, by task."""
    return trial.smaller(scope.control_items or len(trial.places[trial.task]))


def search_rows(model: GatedModel, tasks: TaskSet, method: str, options: SearchOptions) -> int:
    """The maximum number of rows of a search: its budget, or the rows of all its plans.

    Args:
        model: The model whose components are searched.
        tasks: The tasks and their items.
        method: Name of the method.
        options: The budget of the search.
    """
    if options.rows is not None:
        return options.rows
    record = searches.require_method(method)
    places = measured_places(method, tasks, options)
    problem = problem_of(model, tasks, places, options, seed=0, continuous=True)
    if record.most is not None:
        return record.most(problem)
    lengths = np.array([tokens_of(item) for _, item in tasks.bank], dtype=np.int64)
    contrast = float(options.options.get("contrast", 0.0))
    return count_rows(method, problem, lengths, ANY_SPEED, contrast=contrast).rows


def _answers(tasks: TaskSet, places: Places) -> int:
    """The number of items on which the intact model's right answers are looked for."""
    return _count(
        {name: items for name, items in places.items() if tasks.benchmarks[name].wants_own_answers}
    )


def _count(places: Mapping[str, NDArray[np.intp]]) -> int:
    return sum(len(items) for items in places.values())
