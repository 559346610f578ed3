"""Metrics have lm-eval's names, and each task has a default metric."""

import pytest

from broca.errors import TaskUnusable
from broca.tasks import RequestTokenizer
from broca.tasks.metrics import choose_metric, full_metric_names, number_of
from broca.testing import tiny_tokenizer

TOKENIZER = RequestTokenizer(tiny_tokenizer(), max_length=256)


@pytest.mark.parametrize(
    ("name", "metric", "full_name"),
    [
        ("generation", None, "exact_match,flexible-extract"),
        ("generation", "exact_match,strict-match", "exact_match,strict-match"),
        ("choice", None, "acc_norm"),
        ("choice", "acc", "acc"),
        ("choice", "acc,none", "acc"),
        ("rolling", None, "word_perplexity"),
        ("last_word", None, "perplexity"),
    ],
)
def test_metric_and_filter(catalog, name, metric, full_name):
    """The default is `acc_norm` or `flexible-extract` if the task has it, else the first."""
    (task,), _ = catalog.harness_tasks(name)
    assert choose_metric(task, metric).full_name == full_name
    assert full_name in full_metric_names(task)


@pytest.mark.parametrize(
    ("name", "metric", "message"),
    [
        (
            "choice",
            "acc_nrom",
            r"no metric 'acc_nrom'; did you mean 'acc_norm'\?: .* acc, acc_n",
        ),
        ("generation", "exact_match,flexible", "no filter 'flexible'; did you mean 'flexible-extr"),
        ("pair", "acc_norm", "group 'pair' has no metric 'acc_norm'"),
        ("even", "acc,strict", "group 'even' aggregates 'acc' after none, not after 'strict'"),
    ],
)
def test_unknown_metrics_are_refused(catalog, name, metric, message):
    """An unknown metric or filter is refused with the nearest or the known names."""
    with pytest.raises(TaskUnusable, match=message):
        catalog.load(name, TOKENIZER, metric=metric)


def test_perplexities_are_numbers_in_the_direction_of_the_metric(catalog):
    """An item's perplexity is its loss in nats, per word where the task counts words."""
    (task,), _ = catalog.harness_tasks("rolling")
    metric = choose_metric(task, "word_perplexity")
    assert number_of(metric, (-6.0, 3), "item") == 2.0
    assert not metric.higher_is_better
    (task,), _ = catalog.harness_tasks("last_word")
    assert number_of(choose_metric(task, "perplexity"), -6.0, "item") == 6.0


def test_metrics_of_the_whole_task_alone_are_refused(catalog):
    """A metric whose value for an item is not a number, such as F1, is refused."""
    (task,), _ = catalog.harness_tasks("choice")
    with pytest.raises(TaskUnusable, match="is not a number for a single item"):
        number_of(choose_metric(task, "acc"), (1, 2), "item 3")
