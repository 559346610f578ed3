"""Write the items of the neuron studies: paraphrases of shipped items, and pairs to decouple.

Usage: `python training/make_neuron_items.py --tasks TASKS --out benchmarks/neuron_items`,
where TASKS is `src/broca/tasks/shipped`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from facts import TEMPLATES

CONTENTS = 100
"""Contents of a file of paraphrases."""

PAIRS = 100
"""Pairs of every relation."""

_LETTERS = "ABCD"
_WORDINGS = 4

Example = dict[str, Any]


def shipped_items(tasks: Path, task: str) -> Iterator[dict[str, str]]:
    """Yield all items of a shipped task, those of the training split first."""
    for split in ("train", "test"):
        yield from map(json.loads, (tasks / "data" / task / f"{split}.jsonl").open())


def _example(prompt: str, answer: str, content: str, wording: str) -> Example:
    return {"prompt": prompt, "answer": f" {answer}", "content": content, "wording": wording}


def capitals(tasks: Path, rng: np.random.Generator) -> Iterator[list[Example]]:
    """Yield each country in four of the templates that its items were made from."""
    patterns = [re.escape(wording).replace(r"\{\}", "(.+)") for wording in TEMPLATES]
    matches = (
        (re.fullmatch(pattern, item["prompt"]), item["answer"])
        for item in shipped_items(tasks, "capitals")
        for pattern in patterns
    )
    facts = list(dict(sorted((match[1], answer) for match, answer in matches if match)).items())
    for index in rng.permutation(len(facts)):
        country, capital = facts[index]
        chosen = rng.permutation(len(TEMPLATES))[:_WORDINGS]
        yield [
            _example(TEMPLATES[w].format(country), capital, country, f"wording {w}")
            for w in sorted(chosen.tolist())
        ]


def operands(tasks: Path, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Yield the pairs of operands of the shipped additions, in random order."""
    pairs = [re.findall(r"\d+", item["prompt"]) for item in shipped_items(tasks, "addition")]
    for index in rng.permutation(len(pairs)):
        first, second = pairs[index]
        yield int(first), int(second)


def addition(tasks: Path, rng: np.random.Generator) -> Iterator[list[Example]]:
    """Yield each sum in two wordings, with its operands in both orders."""
    for first, second in operands(tasks, rng):
        if first != second:
            total, content = str(first + second), f"{min(first, second)}+{max(first, second)}"
            prompts = {
                "compute": f"compute {first} + {second} =",
                "sum": f"the sum of {first} and {second} is",
                "compute, turned": f"compute {second} + {first} =",
                "sum, turned": f"the sum of {second} and {first} is",
            }
            yield [_example(prompt, total, content, w) for w, prompt in prompts.items()]


def choices(tasks: Path, rng: np.random.Generator, task: str) -> Iterator[list[Example]]:
    """Yield each question with its options in turn."""
    items = list(shipped_items(tasks, task))
    for index in rng.permutation(len(items)):
        listed, question = items[index]["prompt"].removeprefix("choose ").rsplit(" : ", 1)
        options = re.findall(r"[ABCD] (\S+)", listed)
        right = options[_LETTERS.index(items[index]["answer"])]
        content = f"{' '.join(sorted(options))} : {question}"
        examples = []
        for turn in range(len(options)):
            order = options[turn:] + options[:turn]
            named = " ".join(map(" ".join, zip(_LETTERS, order, strict=True)))
            answer, prompt = _LETTERS[order.index(right)], f"choose {named} : {question}"
            examples.append(_example(prompt, answer, content, f"turn {turn}"))
        yield examples


def paraphrases(tasks: Path, task: str) -> list[Example]:
    """Return the paraphrases of a task's items, content by content."""
    rng = np.random.default_rng([0, 17])
    made = {"capitals": capitals, "addition": addition}
    groups = made[task](tasks, rng) if task in made else choices(tasks, rng, task)
    by_content: dict[str, list[Example]] = {}
    for group in groups:
        by_content.setdefault(group[0]["content"], group)
        if len(by_content) == CONTENTS:
            break
    return [example for group in by_content.values() for example in group]


def pairs(tasks: Path) -> list[dict[str, Any]]:
    """Return pairs of letters to sort or reverse and of numbers to add.

    Sorting and reversing are different operations on the same list of letters. Compared lists have
    the same length, so that length is uninformative.
    """
    rng = np.random.default_rng([0, 19])
    lists = [
        re.findall(r"\b[a-z]\b", item["prompt"])
        for task in ("sorting", "reversing")
        for item in shipped_items(tasks, task)
    ]
    lists = [lists[index] for index in rng.permutation(len(lists))]
    by_length = {
        length: [letters for letters in lists if len(letters) == length] for length in (4, 5, 6)
    }

    def ordered(word: str, letters: list[str], order: list[str]) -> dict[str, str]:
        return {"prompt": f"{word} {' '.join(letters)} =", "answer": " ".join(order)}

    sums = operands(tasks, rng)
    rows = []
    for number in range(PAIRS):
        u, v = by_length[4 + number % 3][2 * (number // 3) :][:2]
        (a, b), (c, d) = next(sums), next(sums)
        added = {"prompt": f"compute {a} + {b} =", "answer": str(a + b)}
        sort_u, sort_v = (ordered("sort", letters, sorted(letters)) for letters in (u, v))
        turn_u, turn_v = (ordered("reverse", letters, letters[::-1]) for letters in (u, v))
        others = {"prompt": f"compute {c} + {d} =", "answer": str(c + d)}
        alike = (sort_u, sort_v), (turn_u, turn_v), (added, others)
        reworded = {"prompt": f"the sum of {a} and {b} is", "answer": added["answer"]}
        for relation, first, second in (
            ("same capability, other content", *alike[number % 3]),
            ("same content, other capability", sort_u, turn_u),
            ("same capability and content, other wording", added, reworded),
            ("other capability and content", sort_u, turn_v),
        ):
            rows.append({"relation": relation, "first": first, "second": second})
    return rows


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    files = {
        task: paraphrases(arguments.tasks, task)
        for task in ("capitals", "addition", "mc_biology", "mc_chemistry")
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, rows in {**files, "pairs": pairs(arguments.tasks)}.items():
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        (arguments.out / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
