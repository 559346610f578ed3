"""The items of the neuron verbs: tasks with gold answers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from broca.errors import BadInput, TaskUnusable
from broca.options import DataOptions
from broca.runs.run import Run
from broca.runs.task_sets import Part, TaskSet, lay_out, load_tasks, splits_of
from broca.tasks import Benchmark, Catalog, Split
from broca.tasks.data_sets import PREFIX, read_data_set
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
        BadInput: An option of `data:` sets is given, and no such set.
        TaskUnusable: A task cannot be used, or none of its items has a gold answer.
    """
    task_options = replace(run.options.task_options, reference="gold")
    names = list(dict.fromkeys(name for needed in parts.values() for name in needed))
    if (options.fields or options.answer_tokens) and not any(n.startswith(PREFIX) for n in names):
        raise BadInput("`fields` and `answer_tokens` are for `data:` sets, and none is named")
    limit = ROWS_READ * max(options.items, report_items)
    benchmarks: dict[str, Benchmark] = {}
    for name in names:
        catalog, of_data = run.catalog, name.startswith(PREFIX)
        if of_data:
            data = read_data_set(
                name, limit=limit, fields=options.columns,
                fetch_urls=run.options.source_options.fetch_urls,
            )  # fmt: skip
            catalog = Catalog()  # in that of the run, the name may mean other columns
            catalog.name_of(data)
        benchmarks |= load_tasks(run.model, [name], catalog, task=names[0], options=task_options)
        if of_data:
            benchmarks[name] = _shortened(benchmarks[name], options.answer_tokens)
    splits = splits_of(benchmarks, items=options.items, seed=options.seed, limit=report_items)
    return with_golds(benchmarks, splits, parts)


def _shortened(benchmark: Benchmark, answer_tokens: int | None) -> Benchmark:
    """Returns a task of answers with only the first tokens of each, all if None."""
    items = []
    for item in benchmark.items:
        (request,) = item.requests
        first = replace(request, continuation=request.continuation[:answer_tokens])
        items.append(replace(item, requests=(first,)))
    return replace(benchmark, items=tuple(items))


def with_golds(
    benchmarks: Mapping[str, Benchmark],
    splits: Mapping[str, Split],
    parts: Mapping[Part, Sequence[str]],
) -> TaskSet:
    """Lays out the items of tasks that have a gold answer; a note tells how many have none.

    Raises:
        TaskUnusable: No item of a task has one.
    """
    benchmarks = {name: benchmark.gold_alone() for name, benchmark in benchmarks.items()}
    bank, every = lay_out(benchmarks, splits, parts)
    gold = np.array([benchmark.margin(item) is not None for benchmark, item in bank], dtype=bool)
    places: dict[Part, Places] = {}
    missing: Counter[str] = Counter()
    for part, of_part in every.items():
        places[part] = {name: positions[gold[positions]] for name, positions in of_part.items()}
        missing += Counter(
            {name: int((~gold[positions]).sum()) for name, positions in of_part.items()}
        )
    empty = [name for of_part in places.values() for name in of_part if not len(of_part[name])]
    if empty:
        raise TaskUnusable(
            f"no item of task '{empty[0]}' has a gold answer: neurons are located by the "
            "probability of one; choose another task"
        )
    notes = tuple(
        f"{count} items of {name} were left out: they have no gold answer"
        for name, count in missing.items()
    )
    return TaskSet(benchmarks=benchmarks, bank=bank, places=places, notes=notes)
