"""Metrics have lm-eval's names, and each task has a default metric."""

import numpy as np
import pytest

from broca.errors import TaskUnusable
from broca.tasks import Catalog, LogLikelihood
from broca.tasks.metrics import choose_metric, full_metric_names, scored_group


@pytest.mark.parametrize(
    ("name", "metric", "full_name"),
    [
        ("generation", None, "exact_match,flexible-extract"),
        ("generation", "exact_match,strict-match", "exact_match,strict-match"),
        ("choice", None, "acc_norm"), ("choice", "acc", "acc"), ("choice", "acc,none", "acc"),
        ("few", None, "acc"),
    ],
)  # fmt: skip
def test_metric_and_filter(catalog, name, metric, full_name):
    """The default is `acc_norm` or `flexible-extract` if the task has it, else the first mean."""
    (task,), _ = catalog.harness_tasks(name)
    assert choose_metric(task, metric).full_name == full_name
    assert full_name in full_metric_names(task)
    with pytest.raises(TaskUnusable, match="it returned other; correct its metric_list"):
        choose_metric(task, metric).number({"other": 1.0}, "item 0")


@pytest.mark.parametrize(
    ("name", "metric", "message"),
    [
        ("choice", "acc_nrom", r"'acc_nrom' that .*; did you mean 'acc_norm'\?: .* acc, acc_n"),
        ("few", "mcc", r"no metric 'mcc' that gives each item a score.*: choose one of acc"),
        ("generation", "exact_match,flexible", "'flexible' is unknown; did you mean 'flexible-ext"),
        ("nested", "acc,strict", "filter 'strict' is unknown"),
        ("rolling", None, "no metric that gives each item a score"),
    ],
)
def test_unknown_metrics_are_refused(catalog, tokenizer, name, metric, message):
    """An unknown metric or filter is refused with the nearest or the known names."""
    with pytest.raises(TaskUnusable, match=message):
        catalog.load(name, tokenizer, metric=metric)


def test_tasks_of_a_tag_share_a_metric(catalog):
    """A tag is scored by the mean over its items; tasks without a common metric are refused."""
    tasks, _ = catalog.harness_tasks("pair")
    group, metric = scored_group("tagged", None, tasks, metric=None)
    scores = {
        task.task_name: {metric: score, "sample_len": size}
        for task, score, size in zip(tasks, (0.0, 1.0), (1, 3), strict=True)
    }
    assert group.aggregate(scores)[metric] == pytest.approx(0.75)
    (generation,), _ = catalog.harness_tasks("generation")
    with pytest.raises(TaskUnusable, match="the tasks of 'mixed' have no metric in common"):
        scored_group("mixed", None, [generation, *tasks], metric=None)


@pytest.mark.parametrize(
    ("name", "metric"), [("choice", "acc"), ("choice", "acc_norm"), ("mutual", "acc_mutual_info")]
)
def test_answers_with_the_same_likeliest_choice_have_one_score(catalog, tokenizer, name, metric):
    """Scores of random answers, ties included, are those that lm-eval computes for each."""
    benchmark, rng = catalog.load(name, tokenizer, metric=metric), np.random.default_rng(0)
    item = benchmark.items[0]
    for values in rng.integers(-6, 0, (60, len(item.requests))).tolist():
        outputs = tuple(LogLikelihood(float(value), bool(rng.integers(2))) for value in values)
        assert benchmark.score(item, outputs) == benchmark.metrics(item, outputs)[metric]


def test_chance_is_one_over_the_choices(tokenizer):
    """A score within one-sided 95 % of guessing is at chance; of generations only 0 is."""
    choice, generated = (Catalog().load(name, tokenizer) for name in ("mc_biology", "addition"))
    assert (choice.chance, generated.chance) == (0.25, 0.0)
    assert [choice.at_chance(score, items=300) for score in (0.28, 0.35)] == [True, False]
    few = ((5 / 10, 10), (7 / 16, 16), (6 / 10, 10), (8 / 16, 16))  # exact p .078, .080, .020, .027
    assert [choice.at_chance(score, items=n) for score, n in few] == [True, True, False, False]
    assert [generated.at_chance(score, items=300) for score in (0.0, 0.01)] == [True, False]
