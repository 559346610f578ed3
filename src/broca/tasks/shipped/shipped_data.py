"""Loads the items of the shipped tasks, and scores rhymes; lm-eval calls it by `!function`.

It imports nothing of broca, so that the folder also works with lm-eval alone.
"""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import datasets

_DATA = Path(__file__).parent / "data"


def load(name: str, **_: Any) -> dict[str, datasets.Dataset]:
    """Return the splits `train` and `test` of a shipped task, read from its JSON lines."""
    return {split: _read(_DATA / name / f"{split}.jsonl") for split in ("train", "test")}


def _read(path: Path) -> datasets.Dataset:
    with path.open(encoding="utf-8") as lines:
        return datasets.Dataset.from_list([json.loads(line) for line in lines])


def score_rhyme(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Score 1 if the generated word is in the dictionary and rhymes with the prompt's word."""
    word = doc["prompt"].split()[2]
    return {"exact_match": float(rhymes(word, results[0].strip()))}


def rhymes(word: str, other: str) -> bool:
    """Tell whether two words rhyme in some of their pronunciations.

    They rhyme when they sound the same from the last stressed vowel on, but differ before it: a
    word does not rhyme with itself nor with a homophone.
    """
    pronunciations = _pronunciations()
    return word != other and any(
        part == other_part and sound != other_sound
        for sound, part in pronunciations.get(word, ())
        for other_sound, other_part in pronunciations.get(other, ())
    )


@functools.cache
def _pronunciations() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return word -> (pronunciation, rhyme part), both without stress digits."""
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    text = (_DATA / "rhyming" / "pronunciations.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        word, *phones = line.split()
        stressed = max(i for i, phone in enumerate(phones) if phone[-1] in "12")
        plain = [phone.rstrip("012") for phone in phones]
        pairs[word].append((" ".join(plain), " ".join(plain[stressed:])))
    return {word: tuple(several) for word, several in pairs.items()}
