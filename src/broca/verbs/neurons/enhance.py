"""`neurons enhance`: does training only located neurons help, more than training others?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from broca.models import GatedModel
from broca.neurons.describing import experiment
from broca.neurons.enhancing import enhanced, require_without
from broca.neurons.items import neuron_tasks
from broca.neurons.methods import choose, require_method, require_some
from broca.neurons.opening import opened, settings_of
from broca.neurons.sets import require_draws
from broca.options import (
    DataOptions,
    EngineOptions,
    ExecutorOptions,
    JournalOptions,
    ModelOptions,
    RuleOptions,
    SourceOptions,
    TaskOptions,
    TrainingOptions,
    takes_options,
    without,
)
from broca.results.neurons import NeuronExperiment
from broca.runs.progress import Report
from broca.runs.task_sets import other_tasks
from broca.tasks import Task


@takes_options
def enhance(
    model: str | GatedModel,
    task: str | Task,
    *,
    others: str | Sequence[str | Task] = "",
    method: str = "cnl",
    without: str = "zeroed",
    draws: int = 3,
    matching: str = "size",
    items: int = 100,
    report_items: int = 300,
    seed: int = 0,
    on_progress: Report | None = None,
    training_options: TrainingOptions,
    rule_options: RuleOptions,
    data_options: DataOptions,
    source_options: SourceOptions,
    task_options: Annotated[TaskOptions, without("reference")],
    model_options: Annotated[ModelOptions, without("components")],
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
    journal_options: JournalOptions,
) -> NeuronExperiment:
    """Trains only located neurons, only others, or random ones; measures on held-out items.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: A task as in `broca.localize`, or `data:NAME`, where the name is that of a data set,
            a hub id, a folder or a JSON-lines file.
        others: Tasks to measure on besides; `auto` as in `broca.localize`.
        method: `cnl` (commonality neurons), `knowledge-neurons`, `activation`, `gradient`, `random`
            or `sensing`.
        without: What located neurons are while all others are trained: `zeroed` or `frozen`.
        draws: Random sets to compare each located set with.
        matching: Random sets match the `size`, or the number in every `layer`.
        items: Most items to locate and train on, and most to stop training by.
        report_items: Most items of each task to measure on.
        seed: Seed of the item split, the draws, the order of items and the intervals.
        on_progress: Receives what is going on.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    require_method(method)
    require_without(without)
    chance = require_draws(draws, matching)
    settings = settings_of(
        training_options, rule_options, data_options, task_options,
        method=method, without=without, draws=draws, matching=matching, items=items,
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
        contrast = others if method == "activation" else ()
        tasks = neuron_tasks(
            session.model,
            {"locate": (name, *contrast), "confirm": (name,), "report": (name, *others)},
            catalog, items=items, report_items=report_items, seed=seed,
            task_options=task_options, data_options=data_options,
        )  # fmt: skip
        settings |= {"task": name, "others": list(others)}
        run = session.run(tasks, "enhance", settings)
        choice = choose(run, name, method=method, rule=rule_options, contrast=contrast, seed=seed)
        result = enhanced(
            run, require_some(choice, name).columns, name, (name, *others),
            options=training_options, draws=draws, without=without, matching=chance, seed=seed,
            folder=session.deltas,
        )  # fmt: skip
        return experiment(run, "enhance", result, settings=settings)
