"""Items of the neuron verbs: splits, gold answers and data sets."""

import json

import pytest
from neurons.conftest import benchmark_of, letters

from broca import Run, Workspace
from broca.errors import BadInput, TaskUnusable
from broca.neurons.items import neuron_tasks, with_golds
from broca.options import DataOptions, RunOptions, TaskOptions
from broca.runs.task_sets import TaskSet
from broca.tasks import Benchmark, Catalog, RequestTokenizer, Split
from broca.verification.trial import spread


def cut(model, parts, *, asked=None, **options):
    """Returns the neuron tasks of a model with a few items."""
    run = Run(model, TaskSet(), Workspace(), RunOptions(task_options=TaskOptions(**(asked or {}))))
    return neuron_tasks(run, parts, DataOptions(items=6, **options), report_items=5)


def test_items_are_cut_as_every_verb_cuts_them(reference):
    """Parts are disjoint and those of the common split, and report items are spread."""
    tasks = cut(reference, {"locate": ("addition",), "report": ("addition", "mc_biology")})
    split = Catalog().load("addition", RequestTokenizer.of(reference)).split(items=6, seed=0)
    for part, numbers in (("locate", split.locate), ("report", spread(split.report, 5))):
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
    """JSON lines of prompt and answer are read, asked by the task options and shortened."""
    path = tmp_path / "sums.jsonl"
    rows = [{"prompt": f"compute 1{n} + 2{n} =", "answer": f"{30 + 2 * n} or so"} for n in range(9)]
    path.write_text("\n".join(map(json.dumps, rows)))
    for options, least, most, cut_items in (
        ({}, 2, 99, 0), ({"answer_tokens": 1}, 1, 1, 0),
        ({"asked": {"max_length": 10, "system_prompt": "say"}}, 2, 99, 9),
    ):  # fmt: skip
        tasks = cut(reference, {"locate": (f"data:{path}",)}, **options)
        assert len(tasks.bank) == 2
        for benchmark, item in tasks.bank:
            assert least <= len(benchmark.margin(item).requests[0].continuation) <= most
            assert benchmark.cut_items == cut_items
            assert item.prompt.startswith("say" if cut_items else "compute")
    with pytest.raises(BadInput, match="`answer_tokens` are for `data:` sets, and none"):
        cut(reference, {"locate": ("addition",)}, answer_tokens=1)


def test_items_without_gold_answers_are_left_out(neurons, monkeypatch):
    """Items without gold answers are counted in a note; a task that has no others is refused."""
    original, without = Benchmark.margin, {0}

    def margin(self, item):
        return None if item.number in without else original(self, item)

    monkeypatch.setattr(Benchmark, "margin", margin)
    benchmark, split = benchmark_of(neurons.model, letters(3)), Split((0, 1, 2), (), ())
    arguments = ({"letters": benchmark}, {"letters": split}, {"locate": ("letters",)})
    tasks = with_golds(*arguments)
    assert tasks.places["locate"]["letters"].tolist() == [1, 2]
    assert tasks.notes == ("1 items of letters were left out: they have no gold answer",)
    without |= {1, 2}
    with pytest.raises(TaskUnusable, match="has a gold answer"):
        with_golds(*arguments)
