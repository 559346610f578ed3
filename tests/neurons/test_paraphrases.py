"""Shipped paraphrases and pairs have right answers, share contents and are seeded."""

import re

import pytest

from broca.errors import BadInput
from broca.neurons.paraphrases import PARAPHRASED, capitals, examples_by_wording, shipped_pairs


@pytest.mark.parametrize("task", PARAPHRASED)
def test_paraphrases_share_content_and_differ_in_wording(task):
    """Every content has four different prompts, and the seed determines the items."""
    examples = examples_by_wording(task, contents=6, wordings=4, seed=1).examples
    assert examples == examples_by_wording(task, contents=6, wordings=4, seed=1).examples
    assert examples != examples_by_wording(task, contents=6, wordings=4, seed=2).examples
    groups = {}
    for example in examples:
        groups.setdefault(example["content"], []).append(example)
    assert len(groups) == 6
    for group in groups.values():
        for field in ("prompt", "wording"):
            assert len({example[field] for example in group}) == 4


def test_answers_are_right():
    """Sums, right options and capitals are correct in every wording."""
    for example in examples_by_wording("addition", contents=5).examples:
        assert sum(map(int, re.findall(r"\d+", example["prompt"]))) == int(example["answer"])
    rights = {}
    for example in examples_by_wording("mc_chemistry", contents=5).examples:
        options = dict(re.findall(r"([ABCD]) (\S+)", example["prompt"].split(" : ")[0]))
        rights.setdefault(example["content"], set()).add(options[example["answer"].strip()])
    assert all(len(right) == 1 for right in rights.values())
    capital_of = capitals()
    assert len(capital_of) == 169
    assert (capital_of["france"], capital_of["new zealand"]) == ("paris", "wellington")
    for example in examples_by_wording("capitals", contents=5).examples:
        assert capital_of[example["content"]] == example["answer"].strip()
        assert example["content"] in example["prompt"]


def test_pairs_share_what_they_say():
    """The first word is the capability and the others are the content; pairs differ as labelled."""
    pairs = shipped_pairs(count=9, seed=3)
    assert pairs == shipped_pairs(count=9, seed=3)
    for pair in pairs:
        first, second = (item["prompt"].split() for item in (pair.first, pair.second))
        same_content = sorted(first[1:]) == sorted(second[1:])
        if pair.relation == "same capability, other content":
            assert first[0] == second[0]
            assert not same_content
            assert len(first) == len(second)
        elif pair.relation == "same content, other capability":
            assert (first[0], second[0], same_content) == ("sort", "reverse", True)
        elif pair.relation == "same capability and content, other wording":
            assert pair.first["answer"] == pair.second["answer"]
        else:
            assert pair.relation == "other capability and content"
            assert first[0] != second[0]
            assert not same_content
    assert len(pairs) == 36


def test_tasks_without_paraphrases_are_refused():
    """The message names the tasks with paraphrases or the limit of the count."""
    with pytest.raises(BadInput, match="use capitals"):
        examples_by_wording("sorting", contents=5)
    with pytest.raises(BadInput, match="at least 2"):
        examples_by_wording("capitals", contents=1)
    with pytest.raises(BadInput, match="more than"):
        shipped_pairs(count=100_000)
