"""`neurons reliability`: do an item's neurons move p(answer)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from broca.models import GatedModel
from broca.neurons.describing import experiment
from broca.neurons.items import neuron_tasks
from broca.neurons.neuron_run import INTACT
from broca.neurons.opening import opened, settings_of
from broca.neurons.scaling import move, numbers_of
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
    takes_options,
    without,
)
from broca.results.neurons import NeuronExperiment
from broca.runs.progress import Report
from broca.runs.task_sets import other_tasks
from broca.tasks import Task

UNRELATED = 20
"""Items of each task of another capability that should not move."""


@takes_options
def reliability(
    model: str | GatedModel,
    task: str | Task,
    *,
    others: str | Sequence[str | Task] = "auto",
    factors: str | Sequence[float] = (0.0, 2.0),
    draws: int = 5,
    matching: str = "size",
    items: int = 100,
    seed: int = 0,
    on_progress: Report | None = None,
    rule_options: Annotated[RuleOptions, without("aggregate", "share")],
    data_options: DataOptions,
    source_options: SourceOptions,
    task_options: Annotated[TaskOptions, without("reference")],
    model_options: Annotated[ModelOptions, without("components")],
    engine_options: EngineOptions,
    executor_options: ExecutorOptions,
    journal_options: JournalOptions,
) -> NeuronExperiment:
    """Scales every item's neurons: p(answer) falls when suppressed, and rises when amplified?

    Args:
        model: A shipped model, a local folder, a hub id, or what `broca.load` returned.
        task: A task as in `broca.localize`, or `data:NAME`, where the name is that of a data set,
            a hub id, a folder or a JSON-lines file.
        others: Tasks of other capabilities, whose prompts should not move; `auto` as in `locate`.
        factors: What located neurons are multiplied with, as a list or joined by commas.
        draws: Random sets to compare each located set with.
        matching: Random sets match the `size`, or the number in every `layer`.
        items: Most items to locate on.
        seed: Seed of the item split, the draws and the intervals.
        on_progress: Receives what is going on.

    Raises:
        BrocaError: Bad input, in one line that says what to do.
    """
    numbers, chance = numbers_of(factors), require_draws(draws, matching)
    settings = settings_of(
        rule_options, data_options, task_options,
        factors=numbers, draws=draws, matching=matching, items=items, seed=seed,
    )  # fmt: skip
    with opened(
        model, on_progress, model_options=model_options, engine_options=engine_options,
        executor_options=executor_options, journal_options=journal_options,
    ) as session:  # fmt: skip
        session.stages.enter("building the tasks")
        catalog = session.space.catalog(source_options)
        name = catalog.name_of(task)
        others = other_tasks(name, others, session.model, catalog)
        tasks = neuron_tasks(
            session.model, {"locate": (name, *others)}, catalog, items=items, seed=seed,
            task_options=task_options, data_options=data_options,
        )  # fmt: skip
        settings |= {"task": name, "others": list(others)}
        run = session.run(tasks, "reliability", settings)
        unrelated = [run.places(name)[:UNRELATED] for name in tasks.others]
        result = move(
            run, name, rule=rule_options, unrelated=np.concatenate([INTACT, *unrelated]),
            factors=numbers, draws=draws, matching=chance, seed=seed,
        )  # fmt: skip
        return experiment(run, "reliability", result, settings=settings)
