"""Items of the neuron verbs: the common split, gold answers alone, data sets and examples."""

import json

import pytest
from neurons.conftest import letters

from broca.errors import TaskUnusable
from broca.neurons.items import example_tasks, left_out, neuron_tasks
from broca.options import DataOptions, RunOptions, TaskOptions
from broca.runs.run import Run
from broca.runs.task_sets import TaskSet
from broca.runs.workspace import Workspace
from broca.tasks import Catalog, RequestTokenizer


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
    numbers = {
        part: [tasks.bank[place][1].number for place in places["addition"].tolist()]
        for part, places in tasks.places.items()
    }
    assert numbers == {"locate": list(split.locate), "report": list(split.report[:5])}
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
    name = f"data:{path}"
    full, short = (
        cut(reference, {"locate": (name,)}, answer_tokens=tokens) for tokens in (None, 1)
    )
    for tasks, least, most in ((full, 2, 99), (short, 1, 1)):
        places = tasks.places["locate"][name].tolist()
        assert len(places) == 2
        for benchmark, item in (tasks.bank[place] for place in places):
            assert least <= len(benchmark.margin(item).requests[0].continuation) <= most
    cropped = cut(reference, {"locate": (name,)}, max_length=10)
    assert all(benchmark.cut_items == 0 for benchmark, _ in full.bank)
    assert all(benchmark.cut_items == 9 for benchmark, _ in cropped.bank)


def test_examples_are_located_on_whole(neurons):
    """All examples of a task of examples are used to locate neurons."""
    tasks = example_tasks(neurons.model, letters(3))
    assert tasks.places["locate"]["letters"].tolist() == [0, 1, 2]


def test_items_without_gold_answers_are_left_out(neurons, monkeypatch):
    """Items without gold answers are counted in a note; a task that has no others is refused."""
    from broca.tasks import Benchmark

    original = Benchmark.margin
    monkeypatch.setattr(
        Benchmark, "margin", lambda self, item: original(self, item) if item.number else None
    )
    tasks = example_tasks(neurons.model, letters(3))
    assert tasks.places["locate"]["letters"].tolist() == [1, 2]
    assert left_out(tasks) == ("1 items of letters were left out: they have no gold answer",)
    monkeypatch.setattr(Benchmark, "margin", lambda self, item: None)
    with pytest.raises(TaskUnusable, match="has a gold answer"):
        example_tasks(neurons.model, letters(3))
