"""Margins of generations are taken of right answers."""

import numpy as np
import pytest
from harness_tasks import write_tasks

from broca.engine import Engine
from broca.errors import TaskUnusable
from broca.executors import Asker, LocalExecutor, with_references
from broca.measurement import Plan
from broca.tasks import Catalog, Generation, RequestTokenizer, TaskOptions


@pytest.fixture(scope="module")
def tokenizer(reference):
    """Tokenizes requests for `reference`."""
    return RequestTokenizer(reference.tokenizer, max_length=reference.max_length)


def bank_of(name, tokenizer, options, count):
    """The first items of a shipped task."""
    benchmark = Catalog().load(name, tokenizer, options=options)
    return [(benchmark, item) for item in benchmark.items[:count]]


def test_own_answers_are_kept_where_right(reference, tokenizer):
    """They are what is asked about; items with wrong answers are left out and counted."""
    bank = bank_of("capitals", tokenizer, TaskOptions(), 200)
    engine = Engine(reference)
    found = with_references(engine, bank, list(range(200)), components=96)
    requests = [item.requests[0] for _, item in bank]
    outputs = engine.run(requests, np.ones((1, 96), np.float32), np.zeros(200, dtype=int))
    right = [n for n, (b, item) in enumerate(bank) if b.score(item, [outputs[n]]) == 1]
    assert found.positions == right
    for position in right:
        benchmark, item = found.bank[position]
        (request,) = benchmark.margin(item).requests
        assert isinstance(outputs[position], Generation)
        own = outputs[position].text
        assert request == tokenizer.loglikelihood(item.prompt, own)
    left = 200 - len(right)
    assert left > 0
    assert found.notes == (
        f"{left} of 200 items of capitals were left out of the margin: the intact model's own "
        "answer is right on the others only",
    )


def test_own_answer_may_differ_from_the_target(tokenizer):
    """Any rhyme is right, and the model's own is the one that is asked about."""
    ((benchmark, item),) = bank_of("rhyming", tokenizer, TaskOptions(), 1)
    assert item.prompt == "rhyme with mortified :"
    assert benchmark.right(item, " wide")
    assert not benchmark.right(item, " wine")
    (request,) = benchmark.answered({item.number: " wide"}).margin(item).requests
    assert request == tokenizer.loglikelihood(item.prompt, " wide")
    assert benchmark.answered({}).margin(item) is None


def test_gold_answers_are_the_targets(reference, tokenizer):
    """All that the task's metric accepts; nothing is generated."""
    engine = Engine(reference)
    bank = bank_of("addition", tokenizer, TaskOptions(reference="gold"), 10)
    found = with_references(engine, bank, list(range(10)), components=96)
    assert engine.tokens == 0
    assert found.positions == list(range(10))
    for benchmark, item in found.bank:
        (request,) = benchmark.margin(item).requests
        assert request == tokenizer.loglikelihood(item.prompt, f" {item.target}")


def test_target_that_the_metric_refuses_is_no_answer(tmp_path, reference, tokenizer):
    """A final figure alone is no full answer where the filter looks for more."""
    catalog = Catalog(write_tasks(tmp_path))
    for metric, count in (("exact_match,strict-match", 0), ("exact_match,flexible-extract", 0)):
        benchmark = catalog.load(
            "generation", tokenizer, metric=metric, options=TaskOptions(reference="gold")
        )
        bank = [(benchmark, item) for item in benchmark.items]
        assert sum(benchmark.margin(item) is not None for item in benchmark.items) == count
        with pytest.raises(TaskUnusable, match="use --response accuracy or --reference own"):
            with_references(Engine(reference), bank, [0, 1], components=96)


def test_function_gives_the_answers(reference, tokenizer):
    """One answer is taken under teacher forcing, several are compared, None leaves the item out."""

    def answers(document):
        if document["prompt"].endswith("110 ="):
            return None
        return [document["answer"], "7"] if "9" in document["prompt"] else document["answer"]

    bank = bank_of("addition", tokenizer, TaskOptions(reference=answers), 20)
    found = with_references(Engine(reference), bank, list(range(20)), components=96)
    measured = LocalExecutor(Engine(reference), Asker(found.bank, response="margin")).run(
        Plan.crossed(np.zeros((1, 96), dtype=bool), np.asarray(found.positions))
    )
    for value, position in zip(measured.responses, found.positions, strict=True):
        benchmark, item = found.bank[position]
        margin = benchmark.margin(item)
        compared = "9" in item.prompt
        assert len(margin.requests) == (2 if compared else 1)
        assert margin.requests[0] == tokenizer.loglikelihood(item.prompt, f" {item.target}")
        assert value > 3 if compared else value > -0.5


def test_choices_need_no_reference(reference, tokenizer):
    """Nothing is generated and nothing is left out."""
    engine = Engine(reference)
    bank = bank_of("mc_biology", tokenizer, TaskOptions(), 5)
    found = with_references(engine, bank, list(range(5)), components=96)
    assert found.positions == list(range(5))
    assert found.notes == ()
    assert engine.tokens == 0
