"""The tasks of the zoo (`benchmarks/zoo`): questions drawn at random, and their lm-eval files.

Usage: `python training/zoo_tasks.py --out benchmarks/zoo/tasks`

None of them is a shipped task. Five are questions with options, four are pairs of sentences whose
grammatical one must be the likelier, as in BLiMP, and eight are answered by generation. Every task
draws from thousands of items; a hash keeps a quarter of them from training.
"""

from __future__ import annotations

import argparse
import json
import random
import string
from pathlib import Path

from generators import Item, Task
from task_files import ACCURACY, generation

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_NAMES = (
    "anna", "ben", "carl", "dora", "emil", "fred", "gina", "hans", "ida", "jack", "kate", "leo",
    "mary", "nina", "otto", "paul", "rosa", "sam", "tina", "ute", "vera", "will", "yara", "zoe",
)  # fmt: skip
_NOUNS = (
    "dog", "cat", "bird", "horse", "cow", "goat", "duck", "hen", "pig", "frog", "bear", "crow",
    "snake", "tiger", "rabbit", "girl", "boy", "king", "nurse", "farmer",
)  # fmt: skip
_VERBS = ("walk", "jump", "talk", "play", "wait", "rest", "laugh", "work", "climb", "look")
_PLACES = ("near", "behind", "beside", "above", "below")
_ADJECTIVES = (
    "old", "red", "big", "sad", "young", "black", "small", "calm", "quick", "white", "loud", "shy",
)  # fmt: skip
_THINGS = ("cup", "hat", "box", "car", "pen", "bag", "door", "lamp", "coat", "bowl")
_COLOURS = ("red", "blue", "green", "black", "white", "brown", "pink", "grey")
_PEOPLE = {
    "himself": ("boy", "king", "uncle", "father", "prince", "monk"),
    "herself": ("girl", "queen", "aunt", "mother", "princess", "nun"),
    "themselves": ("boys", "girls", "kings", "queens", "farmers", "nurses"),
}
_HURT = ("hurt", "saw", "helped", "praised", "blamed", "fed", "hid", "liked")


def _letters(rng: random.Random, low: int, high: int) -> list[str]:
    return rng.sample(string.ascii_lowercase, rng.randint(low, high))


def _question(prompt: str, answer: str) -> Item:
    return Item(prompt, answer, prompt)


def _chosen(prompt: str, answer: str, options: tuple[str, ...]) -> Item:
    return Item(prompt, answer, prompt, options)


def _pair(good: str, bad: str) -> Item:
    return Item("", good, good, (good, bad))


def _copying(rng: random.Random) -> Item:
    text = " ".join(_letters(rng, 3, 5))
    return _question(f"copy {text} =", text)


def _shifting(rng: random.Random) -> Item:
    letters = rng.sample(string.ascii_lowercase[:-1], rng.randint(3, 4))
    return _question(
        f"shift {' '.join(letters)} =", " ".join(chr(ord(letter) + 1) for letter in letters)
    )


def _spelling(rng: random.Random) -> Item:
    digits = [rng.randrange(10) for _ in range(rng.randint(3, 4))]
    return _question(f"spell {' '.join(map(str, digits))} =", " ".join(_DIGITS[d] for d in digits))


def _lookup(rng: random.Random) -> Item:
    keys = _letters(rng, 3, 4)
    values = [rng.randrange(10) for _ in keys]
    number = rng.randrange(len(keys))
    listed = " ".join(f"{key} {value}" for key, value in zip(keys, values, strict=True))
    return _question(f"pairs {listed} get {keys[number]} =", str(values[number]))


def _binding(rng: random.Random) -> Item:
    things, colours = rng.sample(_THINGS, 3), rng.sample(_COLOURS, 3)
    number = rng.randrange(3)
    listed = " , ".join(f"the {t} is {c}" for t, c in zip(things, colours, strict=True))
    return _question(f"{listed} . the {things[number]} is", colours[number])


def _next_day(rng: random.Random) -> Item:
    guest, host = rng.sample(_NAMES, 2)
    day = rng.randrange(7)
    return _question(f"{guest} met {host} on {_DAYS[day]} and left on", _DAYS[(day + 1) % 7])


def _counting(rng: random.Random) -> Item:
    letter, *others = rng.sample(string.ascii_lowercase, 4)
    count = rng.randint(1, 4)
    listed = [letter] * count + rng.choices(others, k=6 - count)
    rng.shuffle(listed)
    return _question(f"count {letter} in {' '.join(listed)} =", str(count))


def _odd_one(rng: random.Random) -> Item:
    repeated, single = rng.sample(string.ascii_lowercase, 2)
    listed = [repeated] * rng.randint(3, 5)
    listed.insert(rng.randint(0, len(listed)), single)
    return _question(f"odd {' '.join(listed)} =", single)


def _majority(rng: random.Random) -> Item:
    pair = rng.sample(string.ascii_lowercase, 2)
    listed = rng.choices(pair, k=7)
    answer = max(pair, key=listed.count)
    return _chosen(f"most {' '.join(listed)} :", answer, tuple(sorted(pair)))


def _membership(rng: random.Random) -> Item:
    letters = _letters(rng, 4, 6)
    listed, absent = letters[:-1], letters[-1]
    inside = rng.random() < 0.5
    letter = rng.choice(listed) if inside else absent
    return _chosen(f"is {letter} in {' '.join(listed)} ?", "yes" if inside else "no", ("yes", "no"))


def _larger(rng: random.Random) -> Item:
    a, b = rng.sample(range(10, 100), 2)
    return _chosen(f"larger {a} or {b} :", str(max(a, b)), (str(a), str(b)))


def _earlier(rng: random.Random) -> Item:
    a, b = rng.sample(string.ascii_lowercase, 2)
    first, second = rng.sample(_NAMES, 2)
    answer = first if a < b else second
    return _chosen(f"{first} {a} {second} {b} earlier is", answer, (first, second))


def _same(rng: random.Random) -> Item:
    letters = _letters(rng, 3, 4)
    second = list(letters)
    if rng.random() < 0.5:
        places = rng.sample(range(len(letters)), 2)
        second[places[0]], second[places[1]] = second[places[1]], second[places[0]]
    answer = "yes" if second == letters else "no"
    return _chosen(f"same {' '.join(letters)} and {' '.join(second)} ?", answer, ("yes", "no"))


def _agreement(rng: random.Random) -> Item:
    subject, distractor = rng.sample(_NOUNS, 2)
    plural = rng.random() < 0.5
    start = f"the {subject}{'s' if plural else ''} {rng.choice(_PLACES)} the {distractor}"
    start += "s" if rng.random() < 0.5 else ""
    verb = rng.choice(_VERBS)
    forms = f"{start} {verb}s", f"{start} {verb}"
    return _pair(forms[plural], forms[not plural])


def _tense(rng: random.Random) -> Item:
    past = rng.random() < 0.5
    when = rng.choice(("yesterday", "before") if past else ("today", "now"))
    start = f"{when} the {rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)} {rng.choice(_PLACES)}"
    start += f" the {rng.choice(_THINGS)}"
    verb = rng.choice(_VERBS)
    forms = f"{start} {verb}s", f"{start} {verb}ed"
    return _pair(forms[past], forms[not past])


def _determiner(rng: random.Random) -> Item:
    plural = rng.random() < 0.5
    adjectives = " ".join(rng.sample(_ADJECTIVES, rng.randint(1, 3)))
    start = f"{rng.choice(_NAMES)} saw {'these' if plural else 'this'} {adjectives}"
    noun = rng.choice(_NOUNS)
    forms = f"{start} {noun}", f"{start} {noun}s"
    return _pair(forms[plural], forms[not plural])


def _reflexive(rng: random.Random) -> Item:
    right, wrong = rng.sample(list(_PEOPLE), 2)
    subject, distractor = rng.choice(_PEOPLE[right]), rng.choice(_PEOPLE[wrong])
    start = f"the {subject} {rng.choice(_PLACES)} the {distractor} {rng.choice(_HURT)}"
    return _pair(f"{start} {right}", f"{start} {wrong}")


_DRAWS = (
    _copying, _shifting, _spelling, _lookup, _binding, _next_day, _counting, _odd_one,
    _majority, _membership, _larger, _earlier, _same,
    _agreement, _tense, _determiner, _reflexive,
)  # fmt: skip
TASKS: dict[str, Task] = {
    name: Task(name, name, draw, 0.25)
    for draw, name in ((draw, f"zoo{draw.__name__}") for draw in _DRAWS)
}
"""Task by name; a quarter of its items is held out."""

_COMMON = """\
task: {name}
tag: broca_zoo
custom_dataset: !function zoo_data.load
dataset_kwargs:
  name: {name}
test_split: test
doc_to_text: "{{{{prompt}}}}"
target_delimiter: " "
"""
_CHOICE = """\
output_type: multiple_choice
doc_to_target: "{{label}}"
doc_to_choice: "{{choices}}"
"""
_META = "metadata:\n  version: 1.0\n"


def yaml_of(name: str, *, choice: bool) -> str:
    """Return the lm-eval configuration of a task."""
    return _COMMON.format(name=name) + (_CHOICE + ACCURACY if choice else generation(8)) + _META


def held_out_items(task: Task, count: int, seed: int) -> list[Item]:
    """Return distinct items that training never draws."""
    rng = random.Random(f"{task.name}/{seed}")
    items: dict[str, Item] = {}
    while len(items) < count:
        item = task.sample(rng, held_out=True)
        items.setdefault(item.key, item)
    return list(items.values())


def row_of(item: Item) -> dict:
    """Return an item as a line of the task's file."""
    if not item.options:
        return {"prompt": item.prompt, "answer": item.answer}
    label = item.options.index(item.answer)
    return {"prompt": item.prompt, "choices": item.options, "label": label}


def main() -> None:
    """Write all tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/zoo/tasks"))
    parser.add_argument("--test", type=int, default=800, help="held-out items of each task")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    (options.out / "data").mkdir(parents=True, exist_ok=True)
    for name, task in TASKS.items():
        items = held_out_items(task, options.test, options.seed)
        lines = [json.dumps(row_of(item)) for item in items]
        (options.out / "data" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        (options.out / f"{name}.yaml").write_text(yaml_of(name, choice=bool(items[0].options)))
        print(f"{name}: {len(items)} items, such as {lines[0]}")


if __name__ == "__main__":
    main()
