"""Groups of tasks: their members, and the aggregation of scores by the group's configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from broca.errors import TaskUnusable, nearest
from broca.tasks.metrics import choose_metric, metric_names


@dataclass(frozen=True)
class TaskGroup:
    """An lm-eval group, or the tasks of a tag.

    Attributes:
        name: Name of the group.
        metric: The metric of all its tasks, `NAME,FILTER`.
    """

    name: str
    metric: str
    _group: Any = field(repr=False)

    def score(self, scores: Mapping[str, tuple[float, int]]) -> float:
        """Returns the group's score, by lm-eval's own code.

        Args:
            scores: Score and number of items of every task.
        """
        values = {
            name: {self.metric: value, "sample_len": size} for name, (value, size) in scores.items()
        }
        return float(self._group.aggregate(values)[self.metric])


def group_of(
    name: str, group: Any | None, tasks: Sequence[Any], *, metric: str | None
) -> TaskGroup:
    """Returns the scoring of a group.

    A tag, or a group without an aggregation, is scored by the mean over its items (lm-eval reports
    no number for these).

    Args:
        name: Name of the group.
        group: The lm-eval group; None for a tag.
        tasks: Its tasks.
        metric: `NAME` or `NAME,FILTER`; by default the first that the group aggregates.

    Raises:
        TaskUnusable: The group does not aggregate this metric.
    """
    from lm_eval.api.group import Group
    from lm_eval.config.group import AggMetricConfig

    stated = list(group.aggregate_metric_list or []) if group is not None else []
    metric_name, _, filter_name = (metric or "").partition(",")
    if stated:
        aggregated = [config.metric for config in stated]
        metric_name = metric_name or aggregated[0]
        if metric_name not in aggregated:
            raise TaskUnusable(
                f"group '{name}' has no metric '{metric_name}'{nearest(metric_name, aggregated)}: "
                f"choose one of {', '.join(aggregated)}"
            )
        used = stated[aggregated.index(metric_name)]
        if used.filter_list and not filter_name:
            filter_name = used.filter_list[0]
        if used.filter_list and filter_name not in used.filter_list:
            raise TaskUnusable(
                f"group '{name}' aggregates '{metric_name}' after {', '.join(used.filter_list)}, "
                f"not after '{filter_name}': choose one of them"
            )
    else:
        metric_name = metric_name or _common_metric(name, tasks)
        used = AggMetricConfig(metric=metric_name)
    chosen = choose_metric(tasks[0], f"{metric_name},{filter_name}" if filter_name else metric_name)
    if group is None:
        group = Group(name)
        for task in tasks:
            group.add(task)
    group = replace(group, aggregate_metric_list=[replace(used, filter_list=[chosen.filter])])
    return TaskGroup(name, f"{chosen.name},{chosen.filter}", group)


def _common_metric(name: str, tasks: Sequence[Any]) -> str:
    """Returns the default metric of the first task if all have it, else the first common metric."""
    first = [choose_metric(tasks[0], None).name, *metric_names(tasks[0])]
    common = [metric for metric in first if all(metric in metric_names(task) for task in tasks)]
    if not common:
        raise TaskUnusable(
            f"the tasks of '{name}' have no metric in common: name one of them instead "
            f"({', '.join(task.task_name for task in tasks[:5])})"
        )
    return common[0]
