"""Answers that a metric cannot tell apart are scored once, with lm-eval's score."""

import numpy as np
import pytest

from broca.tasks import LogLikelihood, RequestTokenizer
from broca.testing import tiny_tokenizer


def answers(benchmark, item, seed):
    """Returns random answers to an item, with ties among them."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-6, 0, len(item.requests)).astype(float)
    return tuple(LogLikelihood(value, bool(rng.integers(2))) for value in values.tolist())


def calls_of(benchmark, monkeypatch):
    """Returns the list in which every call of lm-eval's scoring is recorded."""
    (part,) = benchmark._parts
    calls, genuine = [], part._task.process_results
    monkeypatch.setattr(
        part._task, "process_results", lambda *args: calls.append(args) or genuine(*args)
    )
    return calls


@pytest.mark.parametrize(
    ("name", "metric"),
    [("choice", "acc"), ("choice", "acc_norm"), ("inputs", "acc"), ("mutual", "acc")],
)
def test_scores_are_the_harness_own(catalog, monkeypatch, name, metric):
    """Scores of random answers, ties included, equal lm-eval's with few calls of its scoring."""
    benchmark = catalog.load(
        name, RequestTokenizer(tiny_tokenizer(), max_length=256), metric=metric
    )
    calls = calls_of(benchmark, monkeypatch)
    expected = harness_calls = 0
    for seed in range(60):
        item = benchmark.items[seed % 3]
        outputs = answers(benchmark, item, seed)
        before = len(calls)
        score = benchmark.score(item, outputs)
        harness_calls += len(calls) - before
        assert score == benchmark.metrics(item, outputs)[metric]
        expected += score
    assert 0 < expected < 60
    most = 3 * 4  # a likeliest choice of four, three items
    assert harness_calls <= most if name != "mutual" else harness_calls > most


def test_other_metrics_see_every_answer(catalog, monkeypatch):
    """With a task's own `process_results`, only equal answers are scored once."""
    benchmark = catalog.load(
        "choice", RequestTokenizer(tiny_tokenizer(), max_length=256), metric="acc"
    )
    (part,) = benchmark._parts
    monkeypatch.setattr(part._task.config, "process_results", lambda doc, results: {"acc": 0.5})
    calls = calls_of(benchmark, monkeypatch)
    item = benchmark.items[0]
    for seed in (1, 1, 2, 3):
        assert benchmark.score(item, answers(benchmark, item, seed)) == 0.5
    assert len(calls) == 3
