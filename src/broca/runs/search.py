"""The searches of a localization: their problem, their budget, and the repetitions of them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from broca import searches
from broca.engine import Ablation
from broca.errors import BadInput, TaskUnusable
from broca.measurement import Measurement, Plan
from broca.models import GatedModel
from broca.options import BudgetOptions, LocalizeOptions, SearchOptions
from broca.results.localization import Repeat
from broca.runs.references import Referenced
from broca.runs.run import Run, shared_tokens
from broca.runs.task_sets import TaskSet
from broca.searches import OtherTask, Problem, Ranking
from broca.searches.problem import MANY, answered
from broca.tasks import RequestTokenizer
from broca.tasks.catalog import searched_text
from broca.verification.trial import Places

REFERENCES = "looking for right answers"
"""The stage that several verbs have before they measure margins."""


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


def searching_run(
    run: Run, options: LocalizeOptions, method: str, *, seed: int, noted: bool = True
) -> Run:
    """Returns the run of a seed, with its items.

    Args:
        run: The open model.
        options: The options of the localization.
        method: Name of the method.
        seed: Seed of the items and of all other random draws.
        noted: Whether the out folder records the digests of the run.
    """
    search, ablated = options.search_options, options.run_options.ablation_options
    tasks = run.claimed(
        options.task, others=options.others, same_skill=options.same_skill, items=search.items,
        seed=seed, report_items=options.report_items,
    )  # fmt: skip
    found = searches.require_method(method)
    weighs = found.measures_others and found.weighs_others(search.options)
    if weighs and len(run.model.components) > MANY:
        with suppress(TaskUnusable):  # the context of the model holds no sentence
            text = run.catalog.load(searched_text(), RequestTokenizer.of(run.model))
            tasks = tasks.with_text(text, run.model.vocabulary)
    settings = {
        "task": tasks.task, "others": tuple(tasks.benchmarks)[1:],
        "same_skill": list(tasks.same_skill), "method": method,
        "options": {name: searches.written(value) for name, value in search.options.items()},
        "rows": search.rows,
        **({} if search.max_minutes is None else {"max_minutes": search.max_minutes}),
        "k": search.k, "items": search.items, "seed": seed, "response": search.response,
        "ablation": [ablated.ablation, ablated.scale], "components": run.model.kinds,
        "task_options": run.options.task_options.to_dict(),
    }  # fmt: skip
    ablation = Ablation(ablated.ablation, ablated.scale, options.seed)
    return run.on(tasks, settings=settings, ablation=ablation, donors=tasks.located, noted=noted)


def search(
    run: Run,
    method: str,
    options: SearchOptions,
    *,
    seed: int,
    able: Sequence[str] | None = None,
    stage: str = "",
    given: Sequence[int] = (),
    ablated: bool = False,
) -> tuple[Referenced, Ranking]:
    """Finds the reference answers that a search needs, and searches.

    Args:
        run: The run to search on.
        method: Name of the method.
        options: Its budget and settings.
        seed: Seed of the search.
        able: Other tasks that the intact model can do: the search measures no others, which can
            lose nothing; all if None.
        stage: Stage of its progress; by default it names the method.
        given: Columns that are no part of the search.
        ablated: Whether they are ablated in all rows.

    Returns:
        The items with their response, and the ranking that it returned.

    Raises:
        TaskUnusable: No item has a reference answer, and the method or the user requires one.
    """
    run.stages.enter(REFERENCES)
    record, response = searches.require_method(method), options.response
    accuracy_will_do = response is None and not record.needs_gradients
    places = measured_places(method, run.tasks, options)
    kept = (run.tasks.task, *(run.tasks.others if able is None else able))
    referenced = run.referenced(
        response or record.response,
        {name: places[name] for name in kept if name in places},
        otherwise="the search counts right answers" if accuracy_will_do else None,
    )
    problem = problem_of(
        run.model, run.tasks, referenced.places, options, seed=seed,
        continuous=referenced.continuous,
    )  # fmt: skip
    run.stages.enter(stage or f"searching ({method})")
    free = problem.components - len(given)
    problem = replace(problem, components=free, k=min(problem.k, free), scale=run.ablation.scale)
    inner = record.search(problem, options.options)
    found = run.search(
        _given(inner, given, len(run.model.components), ablated) if given else inner,
        method=method, problem=problem, response=referenced.response, options=options.options,
    )  # fmt: skip
    return referenced, found


def orders_by_gradients(
    run: Run, *, rows: int, seed: int
) -> tuple[dict[str, tuple[int, ...]], tuple[str, ...]]:
    """Returns the orders of all components by two methods, on the task's `locate` items.

    Args:
        run: The run.
        rows: Maximum number of rows of each method.
        seed: Seed of the searches.

    Returns:
        The orders by the names of the methods; none, and a note, without gradients.
    """
    orders = {}
    for method in ("gradient", "gradient-integrated"):
        try:
            _, ranking = search(run, method, SearchOptions(rows=rows), seed=seed)
        except BadInput as error:
            return {}, (f"no ranking by gradients: {error}",)
        orders[method] = ranking.order
    return orders, ()


def repeat(
    run: Run, options: LocalizeOptions, method: str, *, seed: int, able: Sequence[str]
) -> Repeat:
    """Returns the selection of a search with another seed, on other items and masks."""
    again = searching_run(run, options, method, seed=seed, noted=False)
    _, ranking = search(
        again, method, options.search_options, seed=seed, able=able,
        stage="searching again, on other items",
    )  # fmt: skip
    again.finish()
    selected = tuple(run.model.components.names[column] for column in ranking.selected)
    answer = None if ranking.answer is None else ranking.answer.says
    return Repeat(seed=seed, selected=selected, answer=answer, rows=again.search_rows)


def alternative(
    run: Run,
    options: LocalizeOptions,
    method: str,
    given: Sequence[int],
    *,
    able: Sequence[str],
    ablated: bool,
) -> tuple[list[int], str, int]:
    """Searches among the other components while some given ones are ablated, or intact.

    Returns:
        Columns of the selection, why nothing was selected, and the number of rows.
    """
    seed, budget = options.seed, options.search_options
    names = [run.model.components.names[column] for column in given]
    settings = {**run.settings, "given": names, "ablated": ablated}
    again = run.on(run.tasks, settings=settings, noted=False)
    stage = f"searching {'beneath' if ablated else 'instead of'} {len(given)} components"
    _, ranking = search(
        again, method, budget, seed=seed, able=able, stage=stage, given=given, ablated=ablated
    )
    again.finish()
    return list(ranking.selected), ranking.reason, again.search_rows


def _given(
    inner: searches.Search[Ranking], given: Sequence[int], components: int, ablated: bool
) -> searches.Search[Ranking]:
    """Runs a search among the components that are not given; its selection names all columns."""
    free = np.setdiff1d(np.arange(components), given)

    def answer(plan: Plan) -> searches.Search[Measurement]:
        masks = np.full((len(plan.masks), components), ablated)
        masks[:, free] = plan.masks
        found = yield replace(plan, masks=masks)
        slopes = None if found.gradients is None else found.gradients[:, free]
        return replace(found, plan=plan, gradients=slopes)

    ranking = yield from answered(inner, answer)
    return replace(ranking, selected=tuple(free[list(ranking.selected)].tolist()))


def measured_places(method: str, tasks: TaskSet, options: SearchOptions) -> Places:
    """Positions of the `locate` items that a method measures, by task; the task's own first.

    Raises:
        BadInput: The method compares drops of tasks, and is to measure margins.
    """
    found = searches.require_method(method)
    weighs = found.weighs_others(options.options)
    if (weighs or found.measures_others) and options.response == "margin":
        raise BadInput(
            f"method '{method}' compares drops of tasks, and margins of tasks are not comparable: "
            "leave `response` out, or choose probability or accuracy"
        )
    names = (tasks.task, *(tasks.others if weighs else ()))
    return {name: tasks.places["locate"][name] for name in names}


def problem_of(
    model: GatedModel,
    tasks: TaskSet,
    places: Mapping[str, Any],
    options: BudgetOptions,
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
    confirm, none = tasks.places.get("confirm", {}), np.zeros(0, dtype=np.intp)
    task, *others = (
        OtherTask(name, items, confirm.get(name, none)) for name, items in places.items()
    )
    given = options.response if isinstance(options, SearchOptions) else None
    return Problem(
        components=len(model.components), items=task.items, k=options.k, rows=options.rows,
        seed=seed, confirm=task.confirm, others=tuple(others),
        continuous=continuous and given is None,
        differentiable=continuous and model.differentiable,
        texts=np.array(tasks.texts, dtype=np.intp),
        **shared_tokens([tasks.bank[position][1] for position in task.items]),
    )  # fmt: skip


def search_rows(model: GatedModel, tasks: TaskSet, method: str, options: SearchOptions) -> int:
    """Returns the largest number of rows that a search may measure, before anything is measured.

    Properties that only measuring shows, such as whether every item has a margin, are assumed to
    hold.

    Raises:
        BadInput: The method refuses the budget or the options.
    """
    places = measured_places(method, tasks, options)
    continuous = options.response != "accuracy"
    problem = problem_of(model, tasks, places, options, seed=0, continuous=continuous)
    return searches.require_method(method).most_rows(problem, options.options)
