"""The items of the neuron verbs: tasks with gold answers, paraphrases, and pairs of items.

Shipped paraphrases and pairs are made from the items of the shipped tasks, by seed, so that no
network is needed. The shipped models know the wordings.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from broca.errors import BadInput, TaskUnusable
from broca.models import GatedModel
from broca.options import DataOptions, TaskOptions
from broca.runs.run import Run
from broca.runs.task_sets import Part, TaskSet, lay_out, load_tasks
from broca.tasks import Benchmark, RequestTokenizer, Split, shipped_folder
from broca.tasks.data_sets import PREFIX, read_data_set
from broca.tasks.example_files import names_file, read_rows
from broca.tasks.examples import Task, harness_task
from broca.verification.trial import Places

ROWS_READ = 4
"""Number of rows of a data set that are read for each requested item."""

PAIRS = "pairs"
"""Name of the task of all items of some pairs."""

CAPITAL_WORDINGS = (
    "the capital of {} is",
    "{} has its capital in",
    "capital city of {} :",
    "{} is governed from",
    "the government of {} is in",
    "in {} the capital is",
    "name the capital of {} :",
    "question : capital of {} ? answer :",
    "the parliament of {} meets in",
    "{} , capital :",
    "ministers of {} work in",
    "the capital that {} chose is",
)

_LETTERS = "ABCD"

Example = dict[str, Any]


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
        task: A key of `PARAPHRASED`; `data:NAME`, a JSON-lines file or a task of examples, whose
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
    if not source.examples and names_file(source.name):
        source = Task.from_examples(source.name)
    if source.examples:
        of_content = [str(each.get("content") or each["prompt"]) for each in source.examples]
        first = list(dict.fromkeys(of_content))[:contents]
        pairs = zip(source.examples, of_content, strict=True)
        examples = tuple(example for example, content in pairs if content in first)
        return replace(source, examples=examples).by_wording()
    if source.name not in PARAPHRASED:
        raise BadInput(
            f"task '{source.name}' has no paraphrases: use {', '.join(PARAPHRASED)}, or a "
            "JSON-lines file of examples with a field 'paraphrases'"
        )
    groups: dict[str, list[Example]] = {}
    for group in PARAPHRASED[source.name](np.random.default_rng([seed, 17]), wordings):
        groups.setdefault(group[0]["content"], group)
        if len(groups) == contents:
            break
    examples = tuple(example for group in groups.values() for example in group)
    return Task(source.name, examples=examples, kind="loglikelihood")


def _shipped_items(task: str) -> Iterator[dict[str, str]]:
    """Reads all items of a shipped task, those of the training split first."""
    for split in ("train", "test"):
        for _, row in read_rows(shipped_folder() / "data" / task / f"{split}.jsonl"):
            yield row


def capitals() -> dict[str, str]:
    """Reads country -> capital from the shipped items."""
    patterns = [re.escape(wording).replace(r"\{\}", "(.+)") for wording in CAPITAL_WORDINGS]
    matches = (
        (re.fullmatch(pattern, item["prompt"]), item["answer"])
        for item in _shipped_items("capitals")
        for pattern in patterns
    )
    return dict(sorted((match[1], answer) for match, answer in matches if match))


def _example(prompt: str, answer: str, content: str, wording: str) -> Example:
    return {"prompt": prompt, "answer": f" {answer}", "content": content, "wording": wording}


def _capitals(rng: np.random.Generator, wordings: int) -> Iterator[list[Example]]:
    facts = list(capitals().items())
    for index in rng.permutation(len(facts)):
        country, capital = facts[index]
        chosen = rng.permutation(len(CAPITAL_WORDINGS))[:wordings]
        yield [
            _example(CAPITAL_WORDINGS[w].format(country), capital, country, f"wording {w}")
            for w in sorted(chosen.tolist())
        ]


def _addition(rng: np.random.Generator, wordings: int) -> Iterator[list[Example]]:
    for first, second in _operands(rng):
        if first != second:
            total, content = str(first + second), f"{min(first, second)}+{max(first, second)}"
            prompts = {
                "compute": f"compute {first} + {second} =",
                "sum": f"the sum of {first} and {second} is",
                "compute, turned": f"compute {second} + {first} =",
                "sum, turned": f"the sum of {second} and {first} is",
            }
            worded = islice(prompts.items(), wordings)
            yield [_example(prompt, total, content, wording) for wording, prompt in worded]


def _operands(rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Pairs of operands of the shipped additions, in random order."""
    pairs = [re.findall(r"\d+", item["prompt"]) for item in _shipped_items("addition")]
    for index in rng.permutation(len(pairs)):
        first, second = pairs[index]
        yield int(first), int(second)


def _choices(task: str, rng: np.random.Generator, wordings: int) -> Iterator[list[Example]]:
    items = list(_shipped_items(task))
    for index in rng.permutation(len(items)):
        listed, question = items[index]["prompt"].removeprefix("choose ").rsplit(" : ", 1)
        options = re.findall(r"[ABCD] (\S+)", listed)
        right = options[_LETTERS.index(items[index]["answer"])]
        content = f"{' '.join(sorted(options))} : {question}"
        examples = []
        for turn in range(min(wordings, len(options))):
            order = options[turn:] + options[:turn]
            named = " ".join(map(" ".join, zip(_LETTERS, order, strict=True)))
            answer, prompt = _LETTERS[order.index(right)], f"choose {named} : {question}"
            examples.append(_example(prompt, answer, content, f"turn {turn}"))
        yield examples


PARAPHRASED: dict[str, Callable[[np.random.Generator, int], Iterator[list[Example]]]] = {
    "capitals": _capitals,
    "addition": _addition,
    "mc_biology": partial(_choices, "mc_biology"),
    "mc_chemistry": partial(_choices, "mc_chemistry"),
}
"""Shipped tasks with paraphrases: by templates, by the order of operands, by the order of
options."""

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
    """Makes pairs for decoupling, from letters to sort or reverse and from numbers to add.

    Sorting and reversing are different operations on the same list of letters. Compared lists have
    the same length, so that length is uninformative.

    Args:
        count: Number of pairs of every relation.
        seed: Seed of the choice.

    Raises:
        BadInput: The count is more than the possible pairs.
    """
    rng = np.random.default_rng([seed, 19])
    lists = [
        re.findall(r"\b[a-z]\b", item["prompt"])
        for task in ("sorting", "reversing")
        for item in _shipped_items(task)
    ]
    lists = [lists[index] for index in rng.permutation(len(lists))]
    by_length = {
        length: [letters for letters in lists if len(letters) == length] for length in (4, 5, 6)
    }
    most = 3 * (min(len(same) for same in by_length.values()) // 2)
    if count > most:
        raise BadInput(f"`items` {count} is more than the {most} pairs that can be made")

    def ordered(word: str, letters: list[str], order: list[str]) -> PromptAnswer:
        return f"{word} {' '.join(letters)} =", f" {' '.join(order)}"

    sums = _operands(rng)
    pairs: list[ItemPair] = []
    for number in range(count):
        u, v = by_length[4 + number % 3][2 * (number // 3) :][:2]
        (a, b), (c, d) = next(sums), next(sums)
        added = (f"compute {a} + {b} =", f" {a + b}")
        sort_u, sort_v = (ordered("sort", letters, sorted(letters)) for letters in (u, v))
        turn_u, turn_v = (ordered("reverse", letters, letters[::-1]) for letters in (u, v))
        alike = (sort_u, sort_v), (turn_u, turn_v), (added, (f"compute {c} + {d} =", f" {c + d}"))
        reworded = f"the sum of {a} and {b} is", added[1]
        pairs += [
            ItemPair("same capability, other content", *alike[number % 3]),
            ItemPair("same content, other capability", sort_u, turn_u),
            ItemPair("same capability and content, other wording", added, reworded),
            ItemPair("other capability and content", sort_u, turn_v),
        ]
    return pairs
