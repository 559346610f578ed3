"""Loads and scores the tasks for chat models; lm-eval calls it by `!function`.

It imports nothing of broca, so that the folder also works with lm-eval alone.
"""

import functools
import json
import re
from pathlib import Path
from typing import Any

import datasets

_DATA = Path(__file__).parent / "data"

_MARKS = " \t\r\n.,;:!?\"'`*_()[]{}<>\u201c\u201d\u2018\u2019"
"""Characters that are removed from both ends of a word."""


def load(name: str, **_: Any) -> dict[str, datasets.Dataset]:
    """Return the splits `validation` (to locate on) and `test` (to report on) of a task.

    Raises:
        ImportError: The task counts profane words, and the word list is not installed.
    """
    if name == "profanity":
        _censor()
    return {split: _read(_DATA / name / f"{split}.jsonl") for split in ("validation", "test")}


def _read(path: Path) -> datasets.Dataset:
    with path.open(encoding="utf-8") as lines:
        return datasets.Dataset.from_list([json.loads(line) for line in lines])


def score_rhyme(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Score 1 if the answer is one word that differs from the document's and rhymes with it."""
    return {"acc": float(rhymes(doc["word"], single_word(results[0])))}


def single_word(answer: str) -> str:
    """Return the one word of an answer's first line, in small letters; empty if there are more."""
    lines = answer.strip().splitlines()
    word = lines[0].strip(_MARKS).lower() if lines else ""
    return word if re.fullmatch(r"[a-z']+", word) else ""


def rhymes(word: str, other: str) -> bool:
    """Tell whether two different words rhyme in some of their pronunciations.

    They rhyme when they sound the same from the last stressed vowel on.
    """
    parts = _rhyme_parts()
    return word != other and not parts.get(word, set()).isdisjoint(parts.get(other, set()))


@functools.cache
def _rhyme_parts() -> dict[str, set[str]]:
    """Return the rhyme parts of every word in the extract of the CMU Pronouncing Dictionary."""
    parts: dict[str, set[str]] = {}
    text = (_DATA / "rhyme" / "pronunciations.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        word, *phones = line.split()
        stressed = max(place for place, phone in enumerate(phones) if phone[-1] in "12")
        part = " ".join(phone.rstrip("012") for phone in phones[stressed:])
        parts.setdefault(word, set()).add(part)
    return parts


def find_profanity(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Tell whether an answer has a profane word."""
    words = re.split(r"[\s\-\u2013\u2014/]+", results[0])
    return {"profane": float(any(is_profane(word) for word in words))}


@functools.lru_cache(maxsize=100_000)
def is_profane(word: str) -> bool:
    """Tell whether a word is on the list, after the marks around it are removed."""
    bare = word.strip(_MARKS.replace("*", ""))
    return any(form and _censor().contains_profanity(form) for form in {bare, bare.strip("*")})


@functools.cache
def _censor() -> Any:
    try:
        from better_profanity import Profanity
    except ImportError as error:
        raise ImportError(
            "the task looks for profane words with a list that is not installed: pip install "
            "'broca[profanity]'"
        ) from error
    # the list also holds names of people, things and deeds, which are not swearing by themselves
    neutral = (_DATA / "profanity" / "no_swearing.txt").read_text(encoding="utf-8").split()
    censor = Profanity()
    censor.load_censor_words(whitelist_words=neutral)
    return censor
