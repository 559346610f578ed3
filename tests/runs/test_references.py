"""Rows are measured as margins if right answers are known, and otherwise by the tasks' metrics."""

import numpy as np
import pytest
from direct import DirectExecutor
from harness_tasks import write_tasks

from broca.engine import Engine
from broca.errors import TaskUnusable
from broca.measurement import Plan
from broca.runs.references import with_references
from broca.tasks import Catalog, Generation, RequestTokenizer, TaskOptions


@pytest.fixture(scope="module")
def tokenizer(reference):
    """A tokenizer of requests for `reference`."""
    return RequestTokenizer.of(reference)


def bank_of(name, tokenizer, options, count):
    """Returns the first items of a shipped task."""
    benchmark = Catalog().load(name, tokenizer, options=options)
    return [(benchmark, item) for item in benchmark.items[:count]]


def referenced(engine, bank, items, response="margin", otherwise=None):
    """Returns the reference answers of some items of one task."""
    places = {bank[0][0].name: np.array(items)}
    intact = np.zeros((1, len(engine.model.components)), dtype=bool)

    def answer(places):
        return DirectExecutor(engine, bank).answers(Plan.crossed(intact, np.array(places)))

    return with_references(response, answer, bank, places, otherwise=otherwise)


def positions(references):
    """Returns the items that have a margin."""
    (places,) = references.places.values()
    return places.tolist()


def test_own_answers_are_kept_where_right(reference, tokenizer):
    """Right outputs are the reference answers; items with wrong outputs are counted and dropped."""
    bank = bank_of("capitals", tokenizer, TaskOptions(), 200)
    engine = Engine(reference)
    references = referenced(engine, bank, range(200), "probability")
    assert (references.response, references.continuous) == ("probability", True)
    assert [item for _, item in references.bank] == [item for _, item in bank]
    requests = [item.requests[0] for _, item in bank]
    outputs = engine.run(requests, np.ones((1, 96), np.float32), np.zeros(200, dtype=int))
    right = [n for n, (b, item) in enumerate(bank) if b.score(item, [outputs[n]]) == 1]
    assert positions(references) == right
    for position in right:
        benchmark, item = references.bank[position]
        (request,) = benchmark.margin(item).requests
        assert isinstance(outputs[position], Generation)
        assert request == tokenizer.loglikelihood(item.prompt, outputs[position].text)
    omitted = 200 - len(right)
    assert omitted > 0
    assert references.notes == (
        f"the search leaves out {omitted} of 200 items of capitals: the intact model fails them",
    )


def test_without_right_answers_accuracy_is_measured_and_noted(tiny):
    """For accuracy no answers are generated; a random model has none, and the note says so."""
    bank, engine = bank_of("addition", RequestTokenizer.of(tiny), TaskOptions(), 6), Engine(tiny)
    references = referenced(engine, bank, range(6), "accuracy")
    assert (references.bank, references.notes, engine.tokens) == (bank, (), 0)
    assert positions(references) == list(range(6))
    noted = referenced(engine, bank, range(6), otherwise="metrics are measured")
    assert (noted.bank, noted.response, noted.continuous) == (bank, "accuracy", False)
    assert noted.notes[0].startswith("metrics are measured: no item of task 'addition' has")


def test_own_answer_may_differ_from_the_target(tokenizer):
    """Any rhyme is right, and the generated rhyme is the reference answer."""
    ((benchmark, item),) = bank_of("rhyming", tokenizer, TaskOptions(), 1)
    assert item.prompt == "rhyme with mortified :"
    assert benchmark.right(item, " wide")
    assert not benchmark.right(item, " wine")
    (request,) = benchmark.answered({item.number: " wide"}).margin(item).requests
    assert request == tokenizer.loglikelihood(item.prompt, " wide")
    assert benchmark.answered({}).margin(item) is None
    for text in ("wide", " wide"):  # decoders of other tokenizers remove the space
        (first, *_) = tokenizer.loglikelihood(item.prompt, text).continuation
        assert benchmark.own_answer(item, "wide", first) == text


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
    catalog, gold = Catalog(write_tasks(tmp_path)), TaskOptions(reference="gold")
    for metric in ("exact_match,strict-match", "exact_match,flexible-extract"):
        benchmark = catalog.load("generation", tokenizer, metric=metric, options=gold)
        bank = [(benchmark, item) for item in benchmark.items]
        assert not any(benchmark.margin(item) for item in benchmark.items)
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
    plan = Plan.crossed(np.zeros((1, 96), dtype=bool), np.asarray(positions(references)))
    measured = DirectExecutor(Engine(reference), references.bank, response="margin").run(plan)
    for value, position in zip(measured.responses, positions(references), strict=True):
        benchmark, item = references.bank[position]
        margin = benchmark.margin(item)
        compared = "9" in item.prompt
        assert len(margin.requests) == (2 if compared else 1)
        assert margin.requests[0] == tokenizer.loglikelihood(item.prompt, f" {item.target}")
        assert value > 3 if compared else value > -0.5
