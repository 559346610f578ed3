"""The items of the neuron verbs: tasks whose margin is the likelihood of the gold answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from broca.errors import TaskUnusable
from broca.models import GatedModel
from broca.options import DataOptions, TaskOptions
from broca.runs.run import Run
from broca.runs.task_sets import Part, TaskSet, lay_out, load_tasks
from broca.tasks import Benchmark, RequestTokenizer, Split
from broca.tasks.data_sets import PREFIX, read_data_set
from broca.tasks.examples import Task, harness_task
from broca.verification import roles
from broca.verification.trial import Places

ROWS_READ = 4
"""Number of rows of a data set that are read for each requested item."""


def neuron_tasks(
    run: Run, parts: Mapping[Part, Sequence[str]], options: DataOptions, *, report_items: int = 0
) -> TaskSet:
    """Loads tasks and splits their items by seed; items without a gold answer are left out.

    Args:
        run: The open model; gold answers are the tasks' targets.
        parts: For each part, the tasks that need it; `data:` sets are read without the catalog.
        options: How many `locate` and `confirm` items each task has at most, the seed of the
            split, and how `data:` sets are read.
        report_items: Maximum number of `report` items of each task.

    Raises:
        TaskUnusable: A task cannot be used, or none of its items has a gold answer.
    """
    task_options = replace(run.options.task_options, reference="gold")
    names = list(dict.fromkeys(name for needed in parts.values() for name in needed))
    limit = ROWS_READ * max(options.items, report_items)
    loaded = load_tasks(
        run.model, [name for name in names if not name.startswith(PREFIX)], run.catalog,
        task=names[0], options=task_options,
    )  # fmt: skip
    benchmarks, splits = {}, {}
    for name in names:
        benchmark = loaded.get(name)
        if benchmark is None:
            examples = read_data_set(name, limit=limit, fields=options.columns)
            benchmark = _of_examples(run.model, examples, options.answer_tokens, task_options)
        benchmarks[name] = benchmark.gold_alone()
        split = benchmarks[name].split(items=options.items, seed=options.seed)
        splits[name] = replace(split, report=split.report[:report_items])
    return with_golds(benchmarks, splits, parts)


def example_tasks(model: GatedModel, task: Task, *, answer_tokens: int | None = None) -> TaskSet:
    """Returns a task of examples, all of whose items are `locate` items."""
    benchmark = _of_examples(model, task, answer_tokens).gold_alone()
    split = Split(tuple(range(len(benchmark.items))), (), ())
    return with_golds({task.name: benchmark}, {task.name: split}, {"locate": (task.name,)})


def _of_examples(
    model: GatedModel, task: Task, answer_tokens: int | None, options: TaskOptions | None = None
) -> Benchmark:
    """Builds a task of examples, whose answers have only their first tokens."""
    tokenizer = RequestTokenizer.of(model, options)
    benchmark = Benchmark.build([harness_task(task, tokenizer)], tokenizer)
    items = (
        replace(
            item,
            requests=tuple(
                replace(request, continuation=request.continuation[:answer_tokens])
                for request in item.requests
            ),
        )
        for item in benchmark.items
    )
    return replace(benchmark, items=tuple(items))


def with_golds(
    benchmarks: Mapping[str, Benchmark],
    splits: Mapping[str, Split],
    parts: Mapping[Part, Sequence[str]],
) -> TaskSet:
    """Lays out the items of tasks that have a gold answer.

    Raises:
        TaskUnusable: No item of a task has one.
    """
    bank, every = lay_out(benchmarks, splits, parts)
    gold = np.array([benchmark.margin(item) is not None for benchmark, item in bank], dtype=bool)
    places: dict[Part, Places] = {
        part: {name: positions[gold[positions]] for name, positions in by_task.items()}
        for part, by_task in every.items()
    }
    for by_task in places.values():
        for name, positions in by_task.items():
            if not len(positions):
                raise TaskUnusable(
                    f"no item of task '{name}' has a gold answer: neurons are located by the "
                    "probability of one; choose another task"
                )
    task = next(iter(benchmarks))
    return TaskSet(task, *roles(task, benchmarks), benchmarks, bank, places)


def left_out(tasks: TaskSet) -> tuple[str, ...]:
    """Returns notes on the tasks, with the number of items without a gold answer."""
    notes: list[str] = []
    for name, benchmark in tasks.benchmarks.items():
        notes += tasks.notes_of(name)
        used = sum(len(by_task.get(name, ())) for by_task in tasks.places.values())
        missing = sum(task is benchmark for task, _ in tasks.bank) - used
        if missing:
            notes.append(f"{missing} items of {name} were left out: they have no gold answer")
    return tuple(notes)
