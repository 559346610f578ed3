"""`neurons erase`: what is lost without located neurons, and without random ones?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from broca.models import GatedModel
from broca.neurons.describing import experiment
from broca.neurons.erasing import erased
from broca.neurons.items import neuron_tasks
from broca.neurons.methods import choose, require_method, require_some
from broca.neurons.opening import opened, settings_of
from broca.neurons.sets import require_draws
from broca.options import (
    DataOptions,
    EngineOptions,
    ExecutorOptions,
    JournalOptions,
    MethodOptions,
    ModelOptions,
    RuleOptions,
    SourceOptions,
    TaskOptions,
    takes_options,
    without,
)
from broca.results.neurons import NeuronExperiment
from broca.runs.progress import Report
from broca.runs.task_sets import listed, other_tasks
from broca.tasks import Task


@takes_options
def erase(
    model: str | GatedModel,
    task: str | Task,
    *,
    others: str | Sequence[str | Task] = "auto",
    methods: str | Sequence[str] = "cnl",
    factor: float = 0.0,
    draws: int = 5,
    matching: str = "size",
    items: int = 100,
    report_items: int = 100,
    seed: int = 0,
    on_progress: Report | None = None,
    rule_options: RuleOptions,
    method_options: MethodOptions,
    data_options: DataOptions,
    source_options: SourceOptions,
    task_options: Annotated[TaskOptions, without("reference")],
    model_options: Annotated[ModelOptions, without("components")],
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
    journal_options: JournalOptions,
) -> NeuronExperiment:
    """Erases located neurons and as many random ones, on held-out items of the task and of others.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: A task as in `broca.localize`, or `data:NAME`, where the name is that of a data set,
            a hub id, a folder or a JSON-lines file.
        others: Tasks to measure on besides; `auto` as in `broca.localize`.
        methods: Methods to compare, a list or joined by commas, at the size of the first.
        factor: What neurons are multiplied with; 0 erases.
        draws: Random sets to compare each located set with.
        matching: Random sets match the `size`, or the number in every `layer`.
        items: Most items of each task to locate on.
        report_items: Most items of each task to measure on.
        seed: Seed of the item split, the draws and the intervals.
        on_progress: Receives what is going on.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    names, chance = listed(methods), require_draws(draws, matching)
    for method in names or [str(methods)]:
        require_method(method, method_options)
    settings = settings_of(
        rule_options, method_options, data_options, task_options,
        methods=names, factor=factor, draws=draws, matching=matching, items=items,
        report_items=report_items, seed=seed,
    )  # fmt: skip
    with opened(
        model, on_progress, model_options=model_options, engine_options=engine_options,
        executor_options=executor_options, journal_options=journal_options,
    ) as session:  # fmt: skip
        session.stages.enter("building the tasks")
        catalog = session.space.catalog(source_options)
        name = catalog.name_of(task)
        others = other_tasks(name, others, session.model, catalog)
        measured = (name, *others)
        contrast = others if "activation" in names else ()
        tasks = neuron_tasks(
            session.model, {"locate": (name, *contrast), "report": measured}, catalog,
            items=items, report_items=report_items, seed=seed, task_options=task_options,
            data_options=data_options,
        )  # fmt: skip
        settings |= {"task": name, "others": list(others)}
        run = session.run(tasks, "erase", settings)
        sets, notes, rule = {}, [], rule_options
        for method in names:
            choice = choose(
                run, name, method=method, rule=rule, options=method_options,
                contrast=contrast, seed=seed,
            )  # fmt: skip
            if method == names[0]:
                rule = replace(rule, count=len(require_some(choice, name).columns))
            if len(choice.columns):
                sets[method] = choice.columns
            else:
                notes.append(f"{method} found no neuron")
        result = erased(run, sets, measured, factor=factor, draws=draws, matching=chance, seed=seed)
        neurons = {method: run.neurons.names(columns) for method, columns in sets.items()}
        settings = {**settings, "neurons": neurons}
        return experiment(run, "erase", result, settings=settings, notes=notes)
