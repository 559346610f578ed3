"""The score of a group, as its file makes it from its tasks' scores."""

import pytest

from broca.errors import TaskUnusable
from broca.tasks.groups import group_of


def test_scores_are_weighted_as_the_group_says(catalog):
    """The group `even` weights its tasks equally, `pair` by their items."""
    scores = {"choice": (0.5, 10), "last": (1.0, 30)}
    for name, expected in (("even", 0.75), ("pair", (0.5 * 10 + 1.0 * 30) / 40)):
        tasks, group = catalog.harness_tasks(name)
        names = [task.task_name for task in tasks]
        task_scores = dict(zip(names, scores.values(), strict=True))
        scoring = group_of(name, group, tasks, metric=None)
        assert scoring.score(task_scores) == pytest.approx(expected)


def test_tasks_without_a_group_are_averaged_over_their_items(catalog):
    """The score of a tag, which lm-eval does not report, is the mean over all items."""
    tasks, _ = catalog.harness_tasks("even")
    tagged = group_of("tagged", None, tasks, metric=None)
    scores = {task.task_name: pair for task, pair in zip(tasks, [(0.0, 1), (1.0, 3)], strict=True)}
    assert tagged.score(scores) == pytest.approx(0.75)
    assert tagged.name == "tagged"


def test_metrics_that_a_group_does_not_aggregate_are_refused(catalog):
    """A metric or filter that the group does not aggregate is refused, with the known ones."""
    tasks, group = catalog.harness_tasks("even")
    assert group_of("even", group, tasks, metric="acc").metric == "acc,none"
    with pytest.raises(TaskUnusable, match="group 'even' has no metric 'ac'; did you mean 'acc'"):
        group_of("even", group, tasks, metric="ac")
    with pytest.raises(TaskUnusable, match="aggregates 'acc' after none, not after 'strict'"):
        group_of("even", group, tasks, metric="acc,strict")


def test_tasks_that_share_no_metric_are_refused(catalog):
    """Tasks without a common metric are refused as a group."""
    (generation,), _ = catalog.harness_tasks("generation")
    (choice,), _ = catalog.harness_tasks("choice")
    with pytest.raises(TaskUnusable, match="the tasks of 'mixed' have no metric in common"):
        group_of("mixed", None, [generation, choice], metric=None)
