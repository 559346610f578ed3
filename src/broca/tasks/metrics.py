"""Chooses the metric of a task or group, and computes its value for each item.

A metric is named as in lm-eval's results: `acc_norm`, or with the filter of the answers,
`exact_match,flexible-extract`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from broca.errors import TaskUnusable, nearest

_PREFERRED_METRIC = "acc_norm"
_PREFERRED_FILTER = "flexible-extract"


@dataclass(frozen=True)
class Metric:
    """A metric of a task.

    Attributes:
        name: Key in the dictionary that the task's `process_results` returns.
        filter: The filter of the answers.
        aggregate: The task's own aggregation over items.
        higher_is_better: Whether a higher value is better.
        stated: Whether the task lists it; otherwise its function returns it.
    """

    name: str
    filter: str
    aggregate: Callable[[list[Any]], float]
    higher_is_better: bool
    stated: bool = True

    @property
    def full_name(self) -> str:
        """Name and filter; a filter `none` is left out."""
        return self.name if self.filter == "none" else f"{self.name},{self.filter}"


def metric_names(task: Any) -> list[str]:
    """Returns the metrics of a harness task, in its order."""
    return [str(name) for name in task.aggregation()]


def filters_of(task: Any) -> list[Any]:
    """Returns lm-eval's filters of a harness task, in its order."""
    return getattr(task, "_filters", None) or []


def filter_names(task: Any) -> list[str]:
    """Returns the names of the filters of a harness task, in its order."""
    return [ensemble.name for ensemble in filters_of(task)] or ["none"]


def listed_metrics(task: Any) -> list[Any]:
    """Returns the metrics that the file of a harness task lists: a name or a function each."""
    entries = getattr(task.config, "metric_list", None) or []
    return [entry.get("metric") for entry in entries]


def full_metric_names(task: Any) -> tuple[str, ...]:
    """Returns the names that `choose_metric` accepts: every metric with every filter."""
    return tuple(
        name if filter_name == "none" else f"{name},{filter_name}"
        for name in metric_names(task)
        for filter_name in filter_names(task)
    )


def choose_metric(task: Any, metric: str | None) -> Metric:
    """Chooses the metric of a task.

    The default is `acc_norm` if the task has it (which compares choices of different lengths per
    letter), else the task's first metric; the default filter is `flexible-extract` if the task has
    it (a strict filter also measures the format), else its first filter.

    Args:
        task: A loaded harness task.
        metric: `NAME` or `NAME,FILTER`; None for the default.

    Raises:
        TaskUnusable: The task has no such metric or no such filter.
    """
    from lm_eval.api.metrics import mean

    names, filters = metric_names(task), filter_names(task)
    name, _, filter_name = (metric or "").partition(",")
    name, filter_name = name.strip(), filter_name.strip()
    if not name:
        if not names:
            raise TaskUnusable(f"task '{task.task_name}' has no metric: give it a metric_list")
        name = _PREFERRED_METRIC if _PREFERRED_METRIC in names else names[0]
    # a function of the task may compute metrics that the task does not list
    if name not in names and not any(map(callable, listed_metrics(task))):
        raise TaskUnusable(
            f"task '{task.task_name}' has no metric '{name}'{nearest(name, names)}: choose one of "
            f"{', '.join(names)}"
        )
    if not filter_name:
        filter_name = _PREFERRED_FILTER if _PREFERRED_FILTER in filters else filters[0]
    if filter_name not in filters:
        raise TaskUnusable(
            f"task '{task.task_name}' has no filter '{filter_name}'"
            f"{nearest(filter_name, filters)}: choose one of {', '.join(filters)}"
        )
    return Metric(
        name,
        filter_name,
        task.aggregation().get(name, mean),
        bool(task.higher_is_better().get(name, True)),
        stated=metric is not None,
    )


def raw_value(metric: Metric, values: dict[str, Any], item: str) -> Any:
    """Returns the task's value of a metric for an item.

    Args:
        metric: The metric.
        values: The dictionary that `process_results` returned.
        item: Name of the item in messages.

    Raises:
        TaskUnusable: The task returned no such metric.
    """
    if metric.name in values:
        return values[metric.name]
    if not metric.stated and values:  # a function such as pass_at_k returns `pass@1`
        return next(iter(values.values()))
    raise TaskUnusable(
        f"{item} got no '{metric.name}' from its task: it returned {', '.join(values) or 'nothing'}"
    )


def number_of(metric: Metric, raw: Any, item: str) -> float:
    """Returns the number of an item, in the direction of the metric, from the task's value.

    Perplexities are aggregated from log-likelihoods: an item's number is its negative
    log-likelihood, per word or byte if the task counts them.

    Raises:
        TaskUnusable: The metric is not a number for a single item.
    """
    if _is_perplexity(metric):
        return -float(raw)
    if is_weighted(metric):
        total, weight = raw
        return -float(total) / float(weight)
    try:
        number = float(raw)
        if not math.isfinite(number):
            raise TaskUnusable(
                f"metric '{metric.name}' of {item} is {'NaN' if math.isnan(number) else number}: "
                "it must be a finite number for every output; "
                "return 0 for one that is wrong"
            )
        return number
    except (TypeError, ValueError, OverflowError):
        raise TaskUnusable(
            f"metric '{metric.name}' of {item} is not a number for a single item (it is "
            f"{type(raw).__name__}): choose another metric of the task"
        ) from None


def aggregate(metric: Metric, numbers: Sequence[float], weights: Sequence[float] | None) -> float:
    """Returns the task's score from the numbers of its items, by the task's own aggregation.

    Args:
        metric: The metric.
        numbers: The number of every item, from `number_of`.
        weights: Words or bytes of every item, if the metric counts them.
    """
    if _is_perplexity(metric):
        return float(metric.aggregate([-number for number in numbers]))
    if weights is not None:
        pairs = zip(numbers, weights, strict=True)
        return float(metric.aggregate([(-number * weight, weight) for number, weight in pairs]))
    return float(metric.aggregate(list(numbers)))


def _is_perplexity(metric: Metric) -> bool:
    from lm_eval.api.metrics import perplexity

    return metric.aggregate is perplexity


def is_weighted(metric: Metric) -> bool:
    """Whether items are weighted by their words or bytes."""
    from lm_eval.api.metrics import bits_per_byte, weighted_perplexity

    return metric.aggregate in (bits_per_byte, weighted_perplexity)


def scored_group(
    name: str, group: Any | None, tasks: Sequence[Any], *, metric: str | None
) -> tuple[Any, str]:
    """Returns the lm-eval group whose `aggregate` scores some tasks, and the metric of all of them.

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
    return group, f"{chosen.name},{chosen.filter}"


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
