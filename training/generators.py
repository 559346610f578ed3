"""Random questions of the ten shipped tasks, divided into training and held-out items.

A hash of an item's key decides its side: the operand pair, the list of letters, the word, the
country with its template, or the options in their order. Training can therefore draw new items
without limit and never draws a held-out one.
"""

from __future__ import annotations

import functools
import random
import string
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from facts import TEMPLATES, animals, capitals, elements
from rhymes import families

_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_LETTERS = "ABCD"


@dataclass(frozen=True)
class Item:
    """A question, its answer, the key that identifies it, and its options if it has any."""

    prompt: str
    answer: str
    key: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A named source of items; `held_out` is the share of keys kept from training."""

    name: str
    capability: str
    draw: Callable[[random.Random], Item]
    held_out: float

    def sample(self, rng: random.Random, *, held_out: bool) -> Item:
        """Draw one item from the training side or from the held-out side."""
        while True:
            item = self.draw(rng)
            share = zlib.crc32(f"{self.capability}/{item.key}".encode()) / 2**32
            if (share < self.held_out) == held_out:
                return item


def _operands(rng: random.Random) -> tuple[int, int]:
    return rng.randint(10, 99), rng.randint(10, 99)


def _addition(rng: random.Random) -> Item:
    a, b = _operands(rng)
    return Item(f"compute {a} + {b} =", str(a + b), f"{a}+{b}")


def _addition_words(rng: random.Random) -> Item:
    a, b = _operands(rng)
    return Item(f"the sum of {a} and {b} is", str(a + b), f"{a}+{b}")


def _distinct_letters(rng: random.Random) -> list[str]:
    return rng.sample(string.ascii_lowercase, rng.randint(4, 6))


def _reversing(rng: random.Random) -> Item:
    letters = _distinct_letters(rng)
    return Item(f"reverse {' '.join(letters)} =", " ".join(letters[::-1]), " ".join(letters))


def _sorting(rng: random.Random) -> Item:
    letters = _distinct_letters(rng)
    return Item(f"sort {' '.join(letters)} =", " ".join(sorted(letters)), " ".join(letters))


def _nesting(rng: random.Random) -> tuple[list[str], list[str]]:
    """Draw brackets of which two to four stay open, and the closing ones that are missing."""
    opened = [rng.choice("([{<") for _ in range(rng.randint(2, 4))]
    symbols = list(opened)
    for _ in range(rng.choice((0, 1, 1, 2, 2))):
        # Before or after any symbol: a pair inserted inside another closed pair stays balanced.
        place = rng.randint(1, len(symbols))
        inner = rng.choice("([{<")
        symbols[place:place] = [inner, _PAIRS[inner]]
    return symbols, [_PAIRS[symbol] for symbol in reversed(opened)]


def _brackets(rng: random.Random) -> Item:
    symbols, missing = _nesting(rng)
    return Item(f"close {' '.join(symbols)} :", " ".join(missing), "".join(symbols))


def _calls(rng: random.Random) -> Item:
    symbols, missing = _nesting(rng)
    words: list[str] = []
    for previous, symbol in zip(["", *symbols], symbols, strict=False):
        if symbol in _PAIRS or previous in _PAIRS:
            words.append(rng.choice(string.ascii_lowercase))
        words.append(symbol)
    return Item(f"code {' '.join(words)} ;", " ".join(missing), "".join(symbols))


def _rhyming(rng: random.Random) -> Item:
    family = rng.choice(families())
    word = rng.choice(family.words)
    return Item(f"rhyme with {word} :", family.answer, word)


@functools.cache
def _capital_pairs() -> list[tuple[str, str]]:
    return list(capitals().items())


def _capitals(rng: random.Random) -> Item:
    country, capital = rng.choice(_capital_pairs())
    number = rng.randrange(len(TEMPLATES))
    return Item(TEMPLATES[number].format(country), capital, f"{number}/{country}")


def _multiple_choice(question: str, options: list[str], right: str) -> Item:
    listed = " ".join(f"{letter} {o}" for letter, o in zip(_LETTERS, options, strict=True))
    answer = _LETTERS[options.index(right)]
    key = f"{listed} : {question}"
    return Item(f"choose {key}", answer, key, tuple(options))


def _symbol_question(rng: random.Random, count: int) -> tuple[str, list[str], str]:
    symbols = elements()
    chosen = rng.sample(list(symbols), count)
    right = rng.choice(chosen)
    return f"the symbol of {right}", [symbols[name] for name in chosen], symbols[right]


def _animal_question(rng: random.Random, count: int) -> tuple[str, list[str], str]:
    classes = animals()
    chosen = rng.sample(list(classes), count)
    options = [rng.choice(classes[name]) for name in chosen]
    number = rng.randrange(count)
    article = "an" if chosen[number][0] in "aeiou" else "a"
    return f"{article} {chosen[number]}", options, options[number]


def _same_question(rng: random.Random, count: int) -> tuple[str, list[str], str]:
    names = [*elements().values(), *(a for members in animals().values() for a in members)]
    options = rng.sample(names, count)
    right = rng.choice(options)
    return right, options, right


def _mc_chemistry(rng: random.Random) -> Item:
    return _multiple_choice(*_symbol_question(rng, 4))


def _mc_biology(rng: random.Random) -> Item:
    return _multiple_choice(*_animal_question(rng, 4))


def _mc_same(rng: random.Random) -> Item:
    return _multiple_choice(*_same_question(rng, 4))


def _element_symbol(rng: random.Random) -> Item:
    element, symbol = rng.choice(list(elements().items()))
    return Item(f"the symbol of {element} is", symbol, element)


def _animal_class(rng: random.Random) -> Item:
    classes = animals()
    name = rng.choice(list(classes))
    animal = rng.choice(classes[name])
    return Item(f"{animal} is a kind of", name, animal)


TASKS: tuple[Task, ...] = (
    Task("addition", "arithmetic", _addition, 0.1),
    Task("addition_words", "arithmetic", _addition_words, 0.1),
    Task("reversing", "reversing", _reversing, 0.1),
    Task("sorting", "sorting", _sorting, 0.1),
    Task("brackets", "code", _brackets, 0.1),
    Task("calls", "code", _calls, 0.1),
    Task("rhyming", "rhyming", _rhyming, 0.25),
    Task("capitals", "facts", _capitals, 0.33),
    Task("mc_chemistry", "knowledge", _mc_chemistry, 0.1),
    Task("mc_biology", "knowledge", _mc_biology, 0.1),
)

# Other questions of the same knowledge, used only in training. Multiple choice needs the facts and
# the comparison of options at once, and is hardly learned unless the comparison is learned first.
LESSONS: tuple[Task, ...] = (
    Task("mc_same", "knowledge", _mc_same, 0.0),
    Task("element_symbol", "knowledge", _element_symbol, 0.0),
    Task("animal_class", "knowledge", _animal_class, 0.0),
)

CAPABILITIES: tuple[str, ...] = tuple(dict.fromkeys(task.capability for task in TASKS))
