"""Loads the items of the package's tasks, scores rhymes and counts profane words, for `!function`.

It imports nothing of broca, so that the folder also works with lm-eval alone.
"""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import datasets

_DATA = Path(__file__).parent / "data"

_MARKS = " \t\r\n.,;:!?\"'`*_()[]{}<>\u201c\u201d\u2018\u2019"
"""Characters that are removed from both ends of a word."""


def load(name: str, **_: Any) -> dict[str, datasets.Dataset]:
    """Return the splits of a task: `test`, and `train` or `validation` to locate on.

    Raises:
        ImportError: The task counts profane words, and the word list is not installed.
    """
    if name == "profanity":
        _censor()
    splits = {}
    for path in sorted((_DATA / name).glob("*.jsonl"), reverse=True):
        with path.open(encoding="utf-8") as lines:
            splits[path.stem] = datasets.Dataset.from_list([json.loads(line) for line in lines])
    return splits


def score_rhyme(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Score 1 if the generated word is in the dictionary and rhymes with the prompt's word."""
    word = doc["prompt"].split()[2]
    return {"exact_match": float(rhymes("rhyming", word, results[0].strip()))}


def score_said_rhyme(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Score 1 if the first line of the answer is one word that rhymes with the document's."""
    lines = results[0].strip().splitlines()
    said = lines[0].strip(_MARKS).lower() if lines else ""
    return {"acc": float(rhymes("rhyme", doc["word"], said))}


def rhymes(task: str, word: str, other: str) -> bool:
    """Tell whether two different words rhyme in some of their pronunciations.

    They rhyme when they sound the same from the last stressed vowel on. In `rhyming` they also
    sound different before it: a word does not rhyme with a homophone.
    """
    sounds = _pronunciations(task)
    return word != other and any(
        part == other_part and (task == "rhyme" or sound != other_sound)
        for sound, part in sounds.get(word, ())
        for other_sound, other_part in sounds.get(other, ())
    )


@functools.cache
def _pronunciations(task: str) -> dict[str, list[tuple[str, str]]]:
    """Return word -> pairs of sound and rhyme part without stress, from the task's extract."""
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    text = (_DATA / task / "pronunciations.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        word, *phones = line.split()
        stressed = max(place for place, phone in enumerate(phones) if phone[-1] in "12")
        plain = [phone.rstrip("012") for phone in phones]
        pairs[word].append((" ".join(plain), " ".join(plain[stressed:])))
    return dict(pairs)


def count_profanity(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Count the profane words of an answer."""
    words = re.split(r"[\s\-\u2013\u2014/]+", results[0])
    return {"profane_words": float(sum(map(_is_profane, words)))}


@functools.lru_cache(maxsize=100_000)
def _is_profane(word: str) -> bool:
    """Tell whether a word is on the list, after the marks around it are removed."""
    bare = word.strip(_MARKS.replace("*", ""))
    return any(form and _censor().contains_profanity(form) for form in {bare, bare.strip("*")})


@functools.cache
def _censor() -> Any:
    try:
        from better_profanity import Profanity
    except ImportError as error:
        raise ImportError(
            "the task counts profane words with a list that is not installed: pip install "
            "'broca[profanity]'"
        ) from error
    # the list also holds names of people, things and deeds, which are not swearing by themselves
    neutral = (_DATA / "profanity" / "no_swearing.txt").read_text(encoding="utf-8").split()
    censor = Profanity()
    censor.load_censor_words(whitelist_words=neutral)
    return censor
