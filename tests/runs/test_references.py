"""Rows are measured as margins if right answers are known, and otherwise by the tasks' metrics."""

import numpy as np
import pytest
from harness_tasks import write_tasks

from broca.engine import Engine
from broca.errors import TaskUnusable
from broca.executors.executor import Executor
from broca.measurement import Plan
from broca.runs.references import with_references
from broca.runs.task_sets import lay_out, load_tasks
from broca.tasks import Catalog, Generation, RequestTokenizer, TaskOptions

TASKS = ("addition", "mc_biology")


def laid_out(model):
    """Returns a bank of two tasks' locate items, and their places."""
    benchmarks = load_tasks(model, TASKS, Catalog(), options=TaskOptions(limit=40))
    splits = {name: benchmark.split(items=6, seed=0) for name, benchmark in benchmarks.items()}
    bank, places = lay_out(benchmarks, splits, {"locate": TASKS})
    return bank, places["locate"]


def ask(model, response, otherwise):
    """Returns the references, and the bank and places that they are made from."""
    bank, places = laid_out(model)
    answer = Executor(Engine(model), bank).answers
    references = with_references(
        response, answer, bank, places, components=len(model.components), otherwise=otherwise
    )
    return references, bank, places


def test_items_with_a_right_answer_have_margins(reference):
    """Items that the intact model answers have margins, and the bank keeps its order."""
    references, bank, places = ask(reference, "probability", None)
    assert (references.response, references.continuous) == ("probability", True)
    assert [item for _, item in references.bank] == [item for _, item in bank]
    for name, usable in references.places.items():
        assert set(usable.tolist()) <= set(places[name].tolist())
        assert len(usable) > 0
        for position in usable:
            benchmark, item = references.bank[position]
            assert benchmark.name == name
            assert benchmark.margin(item) is not None


def test_accuracy_needs_no_right_answers(tiny):
    """For accuracy no reference answers are generated and all items stay."""
    references, bank, places = ask(tiny, "accuracy", None)
    assert (references.bank, references.response, references.continuous, references.notes) == (
        bank, "accuracy", False, (),
    )  # fmt: skip
    assert all((references.places[name] == items).all() for name, items in places.items())


def test_without_right_answers_accuracy_is_asked_and_noted(tiny):
    """If a random model has no right answers, the note says what is measured instead and why."""
    references, bank, _ = ask(tiny, "margin", "metrics are measured")
    assert references.bank == bank
    assert (references.response, references.continuous) == ("accuracy", False)
    (note,) = references.notes
    assert note.startswith("metrics are measured: ")
    assert "addition" in note


@pytest.fixture(scope="module")
def tokenizer(reference):
    """A tokenizer of requests for `reference`."""
    return RequestTokenizer(reference.tokenizer, max_length=reference.max_length)


def bank_of(name, tokenizer, options, count):
    """Returns the first items of a shipped task."""
    benchmark = Catalog().load(name, tokenizer, options=options)
    return [(benchmark, item) for item in benchmark.items[:count]]


def referenced(engine, bank, items):
    """Returns the reference answers of some items of one task."""
    answer = Executor(engine, bank).answers
    places = {bank[0][0].name: np.array(items)}
    return with_references("margin", answer, bank, places, components=96, otherwise=None)


def positions(references):
    """Returns the items that have a margin."""
    (places,) = references.places.values()
    return places.tolist()


def test_own_answers_are_kept_where_right(reference, tokenizer):
    """Right outputs are the reference answers; items with wrong outputs are counted and dropped."""
    bank = bank_of("capitals", tokenizer, TaskOptions(), 200)
    engine = Engine(reference)
    references = referenced(engine, bank, range(200))
    requests = [item.requests[0] for _, item in bank]
    outputs = engine.run(requests, np.ones((1, 96), np.float32), np.zeros(200, dtype=int))
    right = [n for n, (b, item) in enumerate(bank) if b.score(item, [outputs[n]]) == 1]
    assert positions(references) == right
    for position in right:
        benchmark, item = references.bank[position]
        (request,) = benchmark.margin(item).requests
        assert isinstance(outputs[position], Generation)
        output = outputs[position].text
        assert request == tokenizer.loglikelihood(item.prompt, output)
    omitted = 200 - len(right)
    assert omitted > 0
    assert references.notes == (
        f"{omitted} of 200 items of capitals were left out of the margin: the intact model's own "
        "answer is right on the others only",
    )


def test_own_answer_may_differ_from_the_target(tokenizer):
    """Any rhyme is right, and the generated rhyme is the reference answer."""
    ((benchmark, item),) = bank_of("rhyming", tokenizer, TaskOptions(), 1)
    assert item.prompt == "rhyme with mortified :"
    assert benchmark.right(item, " wide")
    assert not benchmark.right(item, " wine")
    (request,) = benchmark.answered({item.number: " wide"}).margin(item).requests
    assert request == tokenizer.loglikelihood(item.prompt, " wide")
    assert benchmark.answered({}).margin(item) is None


def test_gold_answers_are_the_targets(reference, tokenizer):
    """Every item has its target as reference answer, and nothing is generated."""
    engine = Engine(reference)
    bank = bank_of("addition", tokenizer, TaskOptions(reference="gold"), 10)
    references = referenced(engine, bank, range(10))
    assert engine.tokens == 0
    assert positions(references) == list(range(10))
    for benchmark, item in references.bank:
        (request,) = benchmark.margin(item).requests
        assert request == tokenizer.loglikelihood(item.prompt, f" {item.target}")


def test_target_that_the_metric_refuses_is_no_answer(tmp_path, reference, tokenizer):
    """A target that the filter does not accept is not used, and the task is refused."""
    catalog = Catalog(write_tasks(tmp_path))
    for metric, count in (("exact_match,strict-match", 0), ("exact_match,flexible-extract", 0)):
        benchmark = catalog.load(
            "generation", tokenizer, metric=metric, options=TaskOptions(reference="gold")
        )
        bank = [(benchmark, item) for item in benchmark.items]
        assert sum(benchmark.margin(item) is not None for item in benchmark.items) == count
        with pytest.raises(TaskUnusable, match="use `response` accuracy or `reference` own"):
            referenced(Engine(reference), bank, [0, 1])


def test_function_gives_the_answers(reference, tokenizer):
    """A single answer is scored, several are compared, and an item with None is left out."""

    def answers(document):
        if document["prompt"].endswith("110 ="):
            return None
        return [document["answer"], "7"] if "9" in document["prompt"] else document["answer"]

    bank = bank_of("addition", tokenizer, TaskOptions(reference=answers), 20)
    references = referenced(Engine(reference), bank, range(20))
    measured = Executor(Engine(reference), references.bank, response="margin").run(
        Plan.crossed(np.zeros((1, 96), dtype=bool), np.asarray(positions(references)))
    )
    for value, position in zip(measured.responses, positions(references), strict=True):
        benchmark, item = references.bank[position]
        margin = benchmark.margin(item)
        compared = "9" in item.prompt
        assert len(margin.requests) == (2 if compared else 1)
        assert margin.requests[0] == tokenizer.loglikelihood(item.prompt, f" {item.target}")
        assert value > 3 if compared else value > -0.5
