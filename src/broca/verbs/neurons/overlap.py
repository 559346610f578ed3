"""`neurons overlap`: do halves of a data set, and two data sets, have the same neurons?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from broca.errors import BadInput
from broca.models import GatedModel
from broca.neurons.describing import experiment
from broca.neurons.items import neuron_tasks
from broca.neurons.opening import opened, settings_of
from broca.neurons.overlapping import overlapped
from broca.options import (
    DataOptions,
    EngineOptions,
    ExecutorOptions,
    JournalOptions,
    ModelOptions,
    RuleOptions,
    SourceOptions,
    TaskOptions,
    takes_options,
    without,
)
from broca.results.neurons import NeuronExperiment
from broca.runs.progress import Report
from broca.runs.task_sets import other_tasks
from broca.tasks import Task


@takes_options
def overlap(
    model: str | GatedModel,
    tasks: str | Sequence[str | Task] = "auto",
    *,
    items: int = 100,
    seed: int = 0,
    on_progress: Report | None = None,
    rule_options: RuleOptions,
    data_options: DataOptions,
    source_options: SourceOptions,
    task_options: Annotated[TaskOptions, without("reference")],
    model_options: Annotated[ModelOptions, without("components")],
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
    journal_options: JournalOptions,
) -> NeuronExperiment:
    """Compares the neurons of two halves of every task, and of halves of different tasks.

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        tasks: The tasks, as a list or joined by commas; `auto`: all shipped ones.
        items: Most items of each task to locate on.
        seed: Seed of the item split and of the halves.
        on_progress: Receives what is going on.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    settings = settings_of(rule_options, data_options, task_options, items=items, seed=seed)
    with opened(
        model, on_progress, model_options=model_options, engine_options=engine_options,
        executor_options=executor_options, journal_options=journal_options,
    ) as session:  # fmt: skip
        catalog = session.space.catalog(source_options)
        names = other_tasks("", tasks, session.model, catalog)
        if not names:
            raise BadInput("there is no data set to compare: name some in `tasks`")
        session.stages.enter("building the tasks")
        task_set = neuron_tasks(
            session.model, {"locate": names}, catalog, items=items, seed=seed,
            task_options=task_options, data_options=data_options,
        )  # fmt: skip
        settings["tasks"] = list(names)
        run = session.run(task_set, "overlap", settings)
        result = overlapped(run, names, rule=rule_options, seed=seed)
        return experiment(run, "overlap", result, settings=settings)
