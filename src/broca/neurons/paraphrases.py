"""Shipped data for fidelity and decoupling: paraphrases, and pairs of items.

All data are made from the items of the shipped tasks, by seed, so that no network is needed. The
shipped models know the wordings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from broca.errors import BadInput
from broca.tasks import shipped_folder
from broca.tasks.data_sets import PREFIX, read_data_set
from broca.tasks.example_files import names_file
from broca.tasks.examples import Task

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

PAIRS = "pairs"
"""Name of the task of all items of some pairs."""

Example = dict[str, Any]


@dataclass(frozen=True)
class ItemPair:
    """Two items and their relation.

    Attributes:
        relation: Relation, such as `same capability, other content`.
        first: The first example: `prompt` and `answer`.
        second: The second example.
    """

    relation: str
    first: Example
    second: Example


def _example(prompt: str, answer: str, content: str, wording: str) -> Example:
    return {"prompt": prompt, "answer": f" {answer}", "content": content, "wording": wording}


def _items(task: str) -> Iterator[dict[str, str]]:
    """Reads all items of a shipped task, those of the training split first."""
    for split in ("train", "test"):
        path = shipped_folder() / "data" / task / f"{split}.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def capitals() -> dict[str, str]:
    """Reads country -> capital from the shipped items."""
    patterns = [
        re.compile(re.escape(wording).replace(r"\{\}", "(.+)")) for wording in CAPITAL_WORDINGS
    ]
    by_country: dict[str, str] = {}
    for item in _items("capitals"):
        matches = [match for pattern in patterns if (match := pattern.fullmatch(item["prompt"]))]
        # if several wordings match, the longest one leaves the shortest country
        country = min((match.group(1) for match in matches), key=len)
        by_country[country] = item["answer"]
    return dict(sorted(by_country.items()))


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
        total, content = str(first + second), f"{min(first, second)}+{max(first, second)}"
        if first == second:
            continue
        examples = [
            _example(f"compute {first} + {second} =", total, content, "compute"),
            _example(f"the sum of {first} and {second} is", total, content, "sum"),
            _example(f"compute {second} + {first} =", total, content, "compute, turned"),
            _example(f"the sum of {second} and {first} is", total, content, "sum, turned"),
        ]
        yield examples[:wordings]


def _operands(rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Pairs of operands of the shipped additions, in random order."""
    pairs = [
        (int(a), int(b))
        for item in _items("addition")
        for a, b in [re.findall(r"\d+", item["prompt"])]
    ]
    for index in rng.permutation(len(pairs)):
        yield pairs[index]


def _choices(task: str, rng: np.random.Generator, wordings: int) -> Iterator[list[Example]]:
    items = list(_items(task))
    for index in rng.permutation(len(items)):
        item = items[index]
        listed, question = item["prompt"].removeprefix("choose ").rsplit(" : ", 1)
        options = re.findall(r"[ABCD] (\S+)", listed)
        right = options[_LETTERS.index(item["answer"])]
        content = f"{' '.join(sorted(options))} : {question}"
        turned = [options[turn:] + options[:turn] for turn in range(min(wordings, len(options)))]
        examples = []
        for turn, order in enumerate(turned):
            named = " ".join(f"{a} {b}" for a, b in zip(_LETTERS, order, strict=True))
            answer = _LETTERS[order.index(right)]
            prompt = f"choose {named} : {question}"
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
    if not source.examples:
        return _shipped(source.name, contents, wordings, seed)
    of_content = [str(example.get("content") or example["prompt"]) for example in source.examples]
    first = set(list(dict.fromkeys(of_content))[:contents])
    pairs = zip(source.examples, of_content, strict=True)
    examples = tuple(example for example, content in pairs if content in first)
    return replace(source, examples=examples).by_wording()


def _shipped(task: str, contents: int, wordings: int, seed: int) -> Task:
    """Returns items of a shipped task, each in several paraphrases, as a task of examples."""
    if task not in PARAPHRASED:
        raise BadInput(
            f"task '{task}' has no paraphrases: use {', '.join(PARAPHRASED)}, or a JSON-lines "
            "file of examples with a field 'paraphrases'"
        )
    if contents < 2 or wordings < 2:
        raise BadInput("fidelity needs at least 2 `contents` in at least 2 `wordings`")
    by_content: dict[str, list[Example]] = {}
    for group in PARAPHRASED[task](np.random.default_rng([seed, 17]), wordings):
        by_content.setdefault(group[0]["content"], group)
        if len(by_content) == contents:
            break
    examples = tuple(example for group in by_content.values() for example in group)
    return Task(task, examples=examples, kind="loglikelihood")


def read_pairs(path: str | Path) -> list[ItemPair]:
    """Reads pairs from JSON lines: `relation`, and `first` and `second` with `prompt`, `answer`.

    Raises:
        BadInput: The file cannot be read, or a line is not a pair.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise BadInput(f"`pairs` '{path}' is not a file; check the path")
    pairs = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            data = json.loads(line)
            first, second = (
                {"prompt": str(item["prompt"]), "answer": f" {str(item['answer']).strip()}"}
                for item in (data["first"], data["second"])
            )
            pairs.append(ItemPair(str(data["relation"]), first, second))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(
                f"line {number} of '{path}' is not a pair ({type(error).__name__}: {error}): it "
                "needs relation, first and second, each of these with prompt and answer"
            ) from error
    if not pairs:
        raise BadInput(f"`pairs` '{path}' is empty: there are no pairs to decouple")
    return pairs


def task_of(pairs: Sequence[ItemPair]) -> Task:
    """Returns the task of all distinct items of some pairs."""
    examples = {key_of(item): item for pair in pairs for item in (pair.first, pair.second)}
    return Task(PAIRS, examples=tuple(examples.values()), kind="loglikelihood")


def key_of(example: Example) -> tuple[str, str]:
    """Returns what distinguishes an example from others."""
    return example["prompt"], example["answer"]


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
        tuple(re.findall(r"\b[a-z]\b", item["prompt"]))
        for task in ("sorting", "reversing")
        for item in _items(task)
    ]
    lists = [lists[index] for index in rng.permutation(len(lists))]
    by_length = {
        length: [letters for letters in lists if len(letters) == length] for length in (4, 5, 6)
    }
    most = 3 * (min(len(same) for same in by_length.values()) // 2)
    if count > most:
        raise BadInput(f"`items` {count} is more than the {most} pairs that can be made")
    sums = _operands(rng)
    pairs: list[ItemPair] = []
    for number in range(count):
        first, second = by_length[4 + number % 3][2 * (number // 3) :][:2]
        (a, b), (c, d) = next(sums), next(sums)
        same_capability = (
            (_sort(first), _sort(second)),
            (_reverse(first), _reverse(second)),
            (_compute(a, b), _compute(c, d)),
        )
        worded = _example(f"the sum of {a} and {b} is", str(a + b), f"{a}+{b}", "sum")
        related = {
            "same capability, other content": same_capability[number % 3],
            "same content, other capability": (_sort(first), _reverse(first)),
            "same capability and content, other wording": (_compute(a, b), worded),
            "other capability and content": (_sort(first), _reverse(second)),
        }
        pairs += [ItemPair(relation, *items) for relation, items in related.items()]
    return pairs


def _sort(letters: tuple[str, ...]) -> Example:
    joined = " ".join(letters)
    return _example(f"sort {joined} =", " ".join(sorted(letters)), joined, "sort")


def _reverse(letters: tuple[str, ...]) -> Example:
    joined = " ".join(letters)
    return _example(f"reverse {joined} =", " ".join(letters[::-1]), joined, "reverse")


def _compute(first: int, second: int) -> Example:
    content = f"{first}+{second}"
    return _example(f"compute {first} + {second} =", str(first + second), content, "compute")
