"""Items of the neuron verbs: splits, gold answers, data sets, paraphrases and pairs."""

import json
import re
from collections import Counter

import pytest
from neurons.conftest import letters

from broca.errors import BadInput, TaskUnusable
from broca.neurons.items import (
    PARAPHRASED,
    ItemPair,
    example_tasks,
    examples_by_wording,
    neuron_tasks,
    read_pairs,
    shipped_pairs,
)
from broca.options import DataOptions, RunOptions, TaskOptions
from broca.runs.run import Run
from broca.runs.task_sets import TaskSet
from broca.runs.workspace import Workspace
from broca.tasks import Benchmark, Catalog, RequestTokenizer


def cut(model, parts, *, max_length=None, **options):
    """Returns the neuron tasks of a model with a few items."""
    run_options = RunOptions(task_options=TaskOptions(max_length=max_length))
    run = Run(model, TaskSet(), Workspace(), run_options)
    return neuron_tasks(run, parts, DataOptions(items=6, **options), report_items=5)


def test_items_are_cut_as_every_verb_cuts_them(reference):
    """Parts are disjoint and those of the common split, and the report items are limited."""
    tasks = cut(reference, {"locate": ("addition",), "report": ("addition", "mc_biology")})
    tokenizer = RequestTokenizer(reference.tokenizer, max_length=reference.max_length)
    split = Catalog().load("addition", tokenizer).split(items=6, seed=0)
    for part, numbers in (("locate", split.locate), ("report", split.report[:5])):
        places = tasks.places[part]["addition"]
        assert [tasks.bank[place][1].number for place in places] == list(numbers)
    assert list(tasks.places["report"]) == ["addition", "mc_biology"]


def test_margins_are_those_of_the_gold_answer_alone(reference):
    """The margin is that of a multiple choice's right letter and of a generation's target."""
    tasks = cut(reference, {"report": ("addition", "mc_biology")})
    for benchmark, item in tasks.bank:
        margin = benchmark.margin(item)
        assert (len(margin.requests), margin.gold) == (1, None)
        answer = reference.tokenizer.decode(margin.requests[0].continuation)
        assert answer.strip() == item.target.strip()


def test_data_sets_are_read_and_shortened(reference, tmp_path):
    """JSON lines of prompt and answer are read; `answer_tokens` keeps an answer's first tokens."""
    path = tmp_path / "sums.jsonl"
    rows = [{"prompt": f"compute 1{n} + 2{n} =", "answer": f"{30 + 2 * n} or so"} for n in range(9)]
    path.write_text("\n".join(map(json.dumps, rows)))
    for options, least, most, cut_items in (
        ({}, 2, 99, 0), ({"answer_tokens": 1}, 1, 1, 0), ({"max_length": 10}, 2, 99, 9),
    ):  # fmt: skip
        tasks = cut(reference, {"locate": (f"data:{path}",)}, **options)
        assert len(tasks.bank) == 2
        for benchmark, item in tasks.bank:
            assert least <= len(benchmark.margin(item).requests[0].continuation) <= most
            assert benchmark.cut_items == cut_items


def test_items_without_gold_answers_are_left_out(neurons, monkeypatch):
    """Items without gold answers are counted in a note; a task that has no others is refused."""
    original, without = Benchmark.margin, {0}
    monkeypatch.setattr(
        Benchmark,
        "margin",
        lambda self, item: None if item.number in without else original(self, item),
    )
    tasks = example_tasks(neurons.model, letters(3))
    assert tasks.places["locate"]["letters"].tolist() == [1, 2]
    assert tasks.notes == ("1 items of letters were left out: they have no gold answer",)
    without |= {1, 2}
    with pytest.raises(TaskUnusable, match="has a gold answer"):
        example_tasks(neurons.model, letters(3))


@pytest.mark.parametrize("task", PARAPHRASED)
def test_paraphrases_share_content_and_differ_in_wording(task):
    """Every content has four different prompts, and the seed determines the items."""
    first, again, other = (
        examples_by_wording(task, contents=6, wordings=4, seed=seed).examples for seed in (1, 1, 2)
    )
    assert first == again != other
    for field in ("prompt", "wording"):
        pairs = {(example["content"], example[field]) for example in first}
        assert sorted(Counter(content for content, _ in pairs).values()) == [4] * 6


def test_answers_are_right():
    """Sums, right options and capitals are correct in every wording."""
    for example in examples_by_wording("addition", contents=5).examples:
        assert sum(map(int, re.findall(r"\d+", example["prompt"]))) == int(example["answer"])
    rights = set()
    for example in examples_by_wording("mc_chemistry", contents=5).examples:
        options = dict(re.findall(r"([ABCD]) (\S+)", example["prompt"].split(" : ")[0]))
        rights.add((example["content"], options[example["answer"].strip()]))
    assert len(rights) == 5
    capitals = examples_by_wording("capitals", contents=100).examples
    assert {example["content"]: example["answer"] for example in capitals}["france"] == " paris"
    for example in capitals:
        assert example["content"] in example["prompt"]


SHARED = {
    "same capability, other content": (True, False),
    "same content, other capability": (False, True),
    "other capability and content": (False, False),
}
"""Whether the items of a relation share the capability, their first word, and the content."""


def test_pairs_share_what_they_say():
    """Pairs share what their relation says; other wordings have the same answer."""
    pairs = shipped_pairs(count=9, seed=3)
    assert pairs == shipped_pairs(count=9, seed=3)
    assert len(pairs) == 36
    for pair in pairs:
        if pair.relation not in SHARED:
            assert pair.first[1] == pair.second[1]
            continue
        first, second = (prompt.split() for prompt, _ in (pair.first, pair.second))
        same = first[0] == second[0], sorted(first[1:]) == sorted(second[1:])
        assert same == SHARED[pair.relation]
        assert len(first) == len(second)


def test_pairs_are_read_or_refused(tmp_path):
    """A line has a relation and two items; broken lines and empty files are refused."""
    file, item = tmp_path / "pairs.jsonl", {"prompt": "say a", "answer": "A"}
    file.write_text(json.dumps({"relation": "same", "first": item, "second": item}))
    assert read_pairs(file) == [ItemPair("same", ("say a", " A"), ("say a", " A"))]
    for content, message in (('{"relation": "same"}', "line 1 of .* is not a"), ("", "is empty")):
        file.write_text(content)
        with pytest.raises(BadInput, match=message):
            read_pairs(file)
    with pytest.raises(BadInput, match="more than"):
        shipped_pairs(count=100_000)
