"""Requests in tokens, chance, and the responses of rows."""

import numpy as np
import pytest

from broca.engine import Engine
from broca.executors.executor import Executor
from broca.measurement import Plan
from broca.tasks import Catalog, LogLikelihood, RequestTokenizer


@pytest.fixture(scope="module")
def tokenizer(reference):
    """A request tokenizer for `reference`."""
    return RequestTokenizer(reference.tokenizer, max_length=reference.max_length)


def test_chance_is_one_over_the_choices(tokenizer):
    """Chance is a quarter for four choices and 0 for generations."""
    assert Catalog().load("mc_biology", tokenizer).chance == 0.25
    assert Catalog().load("addition", tokenizer).chance == 0.0


def test_scores_near_chance_are_at_chance(tokenizer):
    """A score within one-sided 95 % of guessing is at chance; of generations only 0 is."""
    choice = Catalog().load("mc_biology", tokenizer)
    assert choice.at_chance(0.28, items=300)
    assert not choice.at_chance(0.35, items=300)
    generated = Catalog().load("addition", tokenizer)
    assert generated.at_chance(0.0, items=300)
    assert not generated.at_chance(0.01, items=300)


def test_responses_are_the_metric_of_each_row(reference, tokenizer):
    """The executor's response of a row is the item's score under the row's mask."""
    benchmark = Catalog().load("mc_biology", tokenizer)
    bank = [(benchmark, item) for item in benchmark.items[:5]]
    masks = np.zeros((2, 96), dtype=bool)
    masks[1, :48] = True
    executor = Executor(Engine(reference), bank)
    responses = executor.run(Plan.crossed(masks, np.arange(5))).responses
    assert len(responses) == 10
    for row, (mask, item) in enumerate([(m, i) for m in masks for i in range(5)]):
        outputs = Engine(reference).run(
            list(bank[item][1].requests),
            (~mask[None]).astype(np.float32),
            np.zeros(4, dtype=int),
        )
        assert all(isinstance(output, LogLikelihood) for output in outputs)
        assert responses[row] == benchmark.score(bank[item][1], outputs)
