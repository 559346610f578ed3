"""The items of the neuron verbs: tasks whose margin is the likelihood of the gold answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from broca.errors import TaskUnusable
from broca.models import GatedModel
from broca.options import DataOptions, TaskOptions
from broca.runs.task_sets import Part, TaskSet, lay_out, load_tasks
from broca.tasks import Benchmark, Catalog, RequestTokenizer, Split
from broca.tasks.data_sets import PREFIX, read_data_set
from broca.tasks.examples import Task
from broca.tasks.in_memory import harness_task
from broca.verification import roles
from broca.verification.trial import Places

ROWS_READ = 4
"""Number of rows of a data set that are read for each requested item."""


def neuron_tasks(
    model: GatedModel,
    parts: Mapping[Part, Sequence[str]],
    catalog: Catalog,
    *,
    report_items: int = 0,
    task_options: TaskOptions,
    data_options: DataOptions,
) -> TaskSet:
    """Loads tasks and splits their items by seed; items without a gold answer are left out.

    Args:
        model: The model, for its tokenizer and context.
        parts: For each part, the tasks that need it.
        catalog: Catalog of tasks; `data:` sets are read without it.
        report_items: Maximum number of `report` items of each task.
        task_options: Task options; gold answers are the tasks' targets.
        data_options: How many `locate` and `confirm` items each task has at most, the seed of the
            split, and how `data:` sets are read.

    Raises:
        TaskUnusable: A task cannot be used, or none of its items has a gold answer.
    """
    options = replace(task_options, reference="gold")
    names = list(dict.fromkeys(name for needed in parts.values() for name in needed))
    limit = ROWS_READ * max(data_options.items, report_items)
    data_sets = {
        name: _shortened(
            of_examples(
                model, read_data_set(name, limit=limit, fields=data_options.columns), options
            ),
            data_options.answer_tokens,
        )
        for name in names
        if name.startswith(PREFIX)
    }
    others = [name for name in names if name not in data_sets]
    loaded = load_tasks(model, others, catalog, task=names[0], options=options)
    benchmarks = {name: (loaded | data_sets)[name].gold_alone() for name in names}
    splits = {
        name: task.split(items=data_options.items, seed=data_options.seed)
        for name, task in benchmarks.items()
    }
    cut = {
        name: Split(split.locate, split.confirm, split.report[:report_items])
        for name, split in splits.items()
    }
    return _task_set(benchmarks, cut, parts)


def example_tasks(model: GatedModel, task: Task, *, answer_tokens: int | None = None) -> TaskSet:
    """Returns a task of examples, all of whose items are `locate` items."""
    benchmark = _shortened(of_examples(model, task), answer_tokens).gold_alone()
    split = Split(tuple(range(len(benchmark.items))), (), ())
    return _task_set({task.name: benchmark}, {task.name: split}, {"locate": (task.name,)})


def of_examples(model: GatedModel, task: Task, options: TaskOptions | None = None) -> Benchmark:
    """Builds a task of examples for a model, without a catalog; only `max_length` applies."""
    tokenizer = RequestTokenizer.of(model, options)
    return Benchmark.build([harness_task(task, tokenizer)], tokenizer)


def _shortened(benchmark: Benchmark, answer_tokens: int | None) -> Benchmark:
    """Returns the task with only the first tokens of every answer."""
    if answer_tokens is None:
        return benchmark
    items = tuple(
        replace(
            item,
            requests=tuple(
                replace(request, continuation=request.continuation[:answer_tokens])
                for request in item.requests
            ),
        )
        for item in benchmark.items
    )
    return replace(benchmark, items=items)


def _task_set(
    benchmarks: Mapping[str, Benchmark],
    splits: Mapping[str, Split],
    parts: Mapping[Part, Sequence[str]],
) -> TaskSet:
    bank, places = lay_out(benchmarks, splits, parts)
    gold = np.array([benchmark.margin(item) is not None for benchmark, item in bank], dtype=bool)
    with_gold: dict[Part, Places] = {
        part: {name: positions[gold[positions]] for name, positions in by_task.items()}
        for part, by_task in places.items()
    }
    for by_task in with_gold.values():
        for name, positions in by_task.items():
            if not len(positions):
                raise TaskUnusable(
                    f"no item of task '{name}' has a gold answer: neurons are located by the "
                    "probability of one; choose another task"
                )
    task = next(iter(benchmarks))
    same, others = roles(task, benchmarks)
    return TaskSet(task, same, others, benchmarks, bank, with_gold)


def left_out(tasks: TaskSet) -> tuple[str, ...]:
    """Returns notes on the tasks, with the number of items without a gold answer."""
    used = {
        place
        for by_task in tasks.places.values()
        for places in by_task.values()
        for place in places.tolist()
    }
    notes: list[str] = []
    for name, benchmark in tasks.benchmarks.items():
        notes += tasks.notes_of(name)
        missing = sum(
            task is benchmark and place not in used for place, (task, _) in enumerate(tasks.bank)
        )
        if missing:
            notes.append(f"{missing} items of {name} were left out: they have no gold answer")
    return tuple(notes)
