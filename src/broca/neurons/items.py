"""The items of the neuron verbs: tasks with gold answers, paraphrases, and pairs of items.

Shipped paraphrases and pairs are files, which `training/make_neuron_items.py` makes from the items
of the shipped tasks. The shipped models know the wordings.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from broca.errors import BadInput, TaskUnusable
from broca.models import GatedModel
from broca.options import DataOptions, TaskOptions
from broca.runs.run import Run
from broca.runs.task_sets import Part, TaskSet, lay_out, load_tasks
from broca.tasks import Benchmark, RequestTokenizer, Split
from broca.tasks.data_sets import PREFIX, read_data_set
from broca.tasks.example_files import names_file, read_rows
from broca.tasks.examples import Task, harness_task
from broca.verification.trial import Places

ROWS_READ = 4
"""Number of rows of a data set that are read for each requested item."""

PAIRS = "pairs"
"""Name of the task of all items of some pairs."""

PARAPHRASED = ("capitals", "addition", "mc_biology", "mc_chemistry")
"""Shipped tasks with paraphrases: by templates, by the order of operands, by the order of
options."""

_FOLDER = Path(__file__).parent


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
    benchmarks, splits = {}, {}
    for name in names:
        if name.startswith(PREFIX):
            data = read_data_set(name, limit=limit, fields=options.columns)
            benchmarks[name] = _of_examples(run.model, data, options.answer_tokens, task_options)
        else:
            benchmarks |= load_tasks(
                run.model, [name], run.catalog, task=names[0], options=task_options
            )
        split = benchmarks[name].split(items=options.items, seed=options.seed)
        splits[name] = replace(split, report=split.report[:report_items])
    return with_golds(benchmarks, splits, parts)


def example_tasks(model: GatedModel, task: Task, *, answer_tokens: int | None = None) -> TaskSet:
    """Returns a task of examples, all of whose items are `locate` items."""
    benchmark = _of_examples(model, task, answer_tokens)
    split = Split(tuple(range(len(benchmark.items))), (), ())
    return with_golds({task.name: benchmark}, {task.name: split}, {"locate": (task.name,)})


def _of_examples(
    model: GatedModel, task: Task, answer_tokens: int | None, options: TaskOptions | None = None
) -> Benchmark:
    """Builds a task of examples, whose answers have only their first tokens."""
    tokenizer = RequestTokenizer.of(model, options)
    benchmark = Benchmark.build([harness_task(task, tokenizer)], tokenizer)
    items = []
    for item in benchmark.items:
        answers = ((request, request.continuation[:answer_tokens]) for request in item.requests)
        short = tuple(replace(request, continuation=first) for request, first in answers)
        items.append(replace(item, requests=short))
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


def examples_by_wording(
    task: str | Task, *, contents: int, wordings: int = 4, seed: int = 0
) -> Task:
    """Returns the items of a task, an example for every paraphrase.

    Args:
        task: One of `PARAPHRASED`; `data:NAME`, a JSON-lines file or a task of examples, whose
            examples have `paraphrases`, or a `content` that several of them share.
        contents: Maximum number of contents, the first ones of data and examples.
        wordings: Maximum number of paraphrases of an item of a shipped task.
        seed: Seed of the choice of items of a shipped task.

    Raises:
        BrocaError: The task has no paraphrases, or its file or data cannot be read.
    """
    source = Task(task) if isinstance(task, str) else task
    if source.name.startswith(PREFIX):
        return read_data_set(source.name, limit=contents).by_wording()
    shipped = not source.examples and source.name in PARAPHRASED
    if shipped:
        file = _FOLDER / "paraphrases" / f"{source.name}.jsonl"
        examples = Task.from_examples(file, name=source.name).examples
        source = Task(source.name, examples=examples, kind="loglikelihood")
    elif not source.examples and names_file(source.name):
        source = Task.from_examples(source.name)
    if not source.examples:
        raise BadInput(
            f"task '{source.name}' has no paraphrases: use {', '.join(PARAPHRASED)}, or a "
            "JSON-lines file of examples with a field 'paraphrases'"
        )
    groups: dict[str, list[dict[str, Any]]] = {}
    for example in source.examples:
        groups.setdefault(str(example.get("content") or example["prompt"]), []).append(example)
    if shipped:  # a seed begins elsewhere in the file
        turned = deque((content, group[:wordings]) for content, group in groups.items())
        turned.rotate(-seed * contents)
        groups = dict(turned)
    chosen = [example for group in islice(groups.values(), contents) for example in group]
    return replace(source, examples=tuple(chosen)).by_wording()


PromptAnswer = tuple[str, str]


@dataclass(frozen=True)
class ItemPair:
    """Two items, each a prompt and its answer, and their relation.

    Attributes:
        relation: Relation, such as `same capability, other content`.
        first: The first item.
        second: The second item.
    """

    relation: str
    first: PromptAnswer
    second: PromptAnswer


def read_pairs(path: str | Path) -> list[ItemPair]:
    """Reads pairs from JSON lines: `relation`, and `first` and `second` with `prompt`, `answer`.

    Raises:
        BadInput: The file cannot be read, or a line is not a pair.
    """
    pairs = []
    for place, row in read_rows(Path(path).expanduser()):
        try:
            first, second = (
                (str(item["prompt"]), f" {str(item['answer']).strip()}")
                for item in (row["first"], row["second"])
            )
            pairs.append(ItemPair(str(row["relation"]), first, second))
        except (KeyError, TypeError) as error:
            raise BadInput(
                f"{place} is not a pair ({type(error).__name__}: {error}): it needs relation, "
                "first and second, each of these with prompt and answer"
            ) from error
    if not pairs:
        raise BadInput(f"`pairs` '{path}' is empty: there are no pairs to decouple")
    return pairs


def task_of(pairs: Sequence[ItemPair]) -> Task:
    """Returns the task of all distinct items of some pairs."""
    items = dict.fromkeys(item for pair in pairs for item in (pair.first, pair.second))
    examples = tuple({"prompt": prompt, "answer": answer} for prompt, answer in items)
    return Task(PAIRS, examples=examples, kind="loglikelihood")


def shipped_pairs(*, count: int, seed: int = 0) -> list[ItemPair]:
    """Returns pairs for decoupling, from letters to sort or reverse and from numbers to add.

    Args:
        count: Number of pairs of every relation.
        seed: Seed of the choice.

    Raises:
        BadInput: The count is more than the shipped pairs.
    """
    pairs = read_pairs(_FOLDER / "pairs.jsonl")
    relations = len({pair.relation for pair in pairs})
    if count * relations > len(pairs):
        most = len(pairs) // relations
        raise BadInput(f"`items` {count} is more than the {most} pairs of a relation that ship")
    turned = deque(pairs)
    turned.rotate(-seed * count * relations)  # a seed begins elsewhere in the file
    return list(islice(turned, count * relations))
