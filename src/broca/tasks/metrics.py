"""Chooses the metric of a task or group, and computes its value for each item.

A metric is named as in lm-eval's results: `acc_norm`, or with the filter of the answers,
`exact_match,flexible-extract`. It may also be a function of the caller.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from lm_eval.api.group import Group
from lm_eval.api.metrics import mean, median, nanmean
from lm_eval.api.registry import AGGREGATION_REGISTRY
from lm_eval.config.group import AggMetricConfig

from broca.errors import TaskUnusable, nearest, require_known

MetricFunction = Callable[[str, Any], float]
"""A function of the model's output and the right answer, or of the output and the whole example if
its second parameter is called `document`. Higher is better, and 1 is right."""

_WHOLE = [*{*AGGREGATION_REGISTRY.values()} - {mean, median, nanmean}]
"""lm-eval's aggregations to numbers that are no shares of items, such as perplexity and F1."""


@dataclass(frozen=True)
class Metric:
    """A metric of a task.

    Attributes:
        name: Key in the dictionary that the task's `process_results` returns.
        filter: The filter of the answers.
        aggregation: The task's own aggregation over items.
        higher_is_better: Whether a higher value is better.
        stated: Whether it has this name; a metric that is a function may return another.
    """

    name: str
    filter: str
    aggregation: Callable[[list[Any]], float]
    higher_is_better: bool
    stated: bool = True

    @property
    def full_name(self) -> str:
        """Name and filter; a filter `none` is left out."""
        return _full_name(self.name, self.filter)

    def number(self, values: dict[str, Any], item: str) -> float:
        """Returns the number of an item, in the direction of the metric.

        Args:
            values: The dictionary that `process_results` returned.
            item: Name of the item in messages.

        Raises:
            TaskUnusable: The task returned no such metric, or one that is not a number from 0 to 1
                for a single item.
        """
        if self.name not in values and (self.stated or not values):
            raise TaskUnusable(
                f"{item} got no '{self.name}' from its task: it returned "
                f"{', '.join(values) or 'nothing'}; correct its metric_list"
            )
        # a function such as pass_at_k returns `pass@1`
        raw = values[self.name] if self.name in values else next(iter(values.values()))
        try:
            number = float(raw)
        except (TypeError, ValueError, OverflowError):
            raise TaskUnusable(
                f"metric '{self.name}' of {item} is not a number for a single item (it is "
                f"{type(raw).__name__}): choose another metric of the task"
            ) from None
        if not -1e-9 <= number <= 1 + 1e-9:  # rounding
            raise TaskUnusable(
                f"metric '{self.name}' of {item} is {'NaN' if math.isnan(number) else number}: "
                "tasks are compared by shares, from 0 to 1 for every output; choose another metric"
            )
        return number


def _full_name(name: str, filter_name: str) -> str:
    return name if filter_name == "none" else f"{name},{filter_name}"


def metric_names(task: Any) -> list[str]:
    """Returns the metrics of a harness task, without those of lm-eval that need all items.

    Those that are means over items come first.
    """
    names = [(str(name), how) for name, how in task.aggregation().items() if how not in _WHOLE]
    return [name for name, _ in sorted(names, key=lambda named: named[1] is not mean)]


def filters_of(task: Any) -> list[Any]:
    """Returns lm-eval's filters of a harness task, in its order."""
    return getattr(task, "_filters", None) or []


def filter_names(task: Any) -> list[str]:
    """Returns the names of the filters of a harness task, in its order."""
    return [ensemble.name for ensemble in filters_of(task)] or ["none"]


def listed_metrics(task: Any) -> list[Any]:
    """Returns the metrics that the file of a harness task lists: a name or a function each."""
    return [entry.get("metric") for entry in getattr(task.config, "metric_list", None) or []]


def full_metric_names(task: Any) -> tuple[str, ...]:
    """Returns the names that `choose_metric` accepts: every metric with every filter."""
    return tuple(_full_name(name, how) for name in metric_names(task) for how in filter_names(task))


def choose_metric(task: Any, metric: str | None) -> Metric:
    """Chooses the metric of a task.

    The default is `acc_norm` if the task has it (which compares choices of different lengths per
    letter), else the first of `metric_names`; the default filter is `flexible-extract` if the task
    has it (a strict filter also measures the format), else its first filter.

    Args:
        task: A loaded harness task.
        metric: `NAME` or `NAME,FILTER`; None for the default.

    Raises:
        TaskUnusable: The task has no such metric or no such filter.
    """
    names, filters = metric_names(task), filter_names(task)
    name, filter_name = _split(metric)
    if not names:
        raise TaskUnusable(
            f"task '{task.task_name}' has no metric that gives each item a score, such as acc (it "
            f"lists {', '.join(map(str, task.aggregation())) or 'none'}): name another task"
        )
    name = name or ("acc_norm" if "acc_norm" in names else names[0])
    # a function of the task may compute metrics that the task does not list
    if name not in names and not any(map(callable, listed_metrics(task))):
        raise TaskUnusable(
            f"task '{task.task_name}' has no metric '{name}' that gives each item a score"
            f"{nearest(name, names)}: choose one of {', '.join(names)}"
        )
    if not filter_name:
        filter_name = "flexible-extract" if "flexible-extract" in filters else filters[0]
    require_known(f"task '{task.task_name}': filter", filter_name, filters, error=TaskUnusable)
    stated = metric is not None or not any(map(callable, listed_metrics(task)))
    higher = bool(task.higher_is_better().get(name, True))
    return Metric(name, filter_name, task.aggregation().get(name, mean), higher, stated=stated)


def _split(metric: str | None) -> tuple[str, str]:
    """Returns the name and the filter of `NAME` or `NAME,FILTER`; what is missing is empty."""
    name, _, filter_name = (metric or "").partition(",")
    return name.strip(), filter_name.strip()


def scored_group(
    name: str, group: Any | None, tasks: Sequence[Any], *, metric: str | None
) -> tuple[Any, str]:
    """Returns the lm-eval group whose `aggregate` scores some tasks, and the metric of all of them.

    A tag, or a group that does not aggregate the metric, is scored by the mean over its items
    (lm-eval reports no number for these).

    Args:
        name: Name of the group.
        group: The lm-eval group; None for a tag.
        tasks: Its tasks.
        metric: `NAME` or `NAME,FILTER`; by default the first that the group aggregates, or the
            default of the first task, or else the first that all tasks have.

    Raises:
        TaskUnusable: The first task has no such metric, or the tasks have none in common.
    """
    stated = list(group.aggregate_metric_list or []) if group is not None else []
    metric_name, filter_name = _split(metric)
    if not metric_name and stated:
        metric_name = stated[0].metric
    if not metric_name:
        several = [metric_names(task) for task in tasks]
        first = [choose_metric(tasks[0], None).name, *several[0]]
        common = [chosen for chosen in first if all(chosen in names for names in several)]
        if not common:
            raise TaskUnusable(
                f"the tasks of '{name}' have no metric in common: name one of them instead "
                f"({', '.join(task.task_name for task in tasks[:5])})"
            )
        metric_name = common[0]
    unstated = AggMetricConfig(metric=metric_name)
    used = next((config for config in stated if config.metric == metric_name), unstated)
    if not filter_name and used.filter_list:
        filter_name = used.filter_list[0]
    chosen = choose_metric(tasks[0], f"{metric_name},{filter_name}")
    if group is None:
        group = Group(name)
        for task in tasks:
            group.add(task)
    group = replace(group, aggregate_metric_list=[replace(used, filter_list=[chosen.filter])])
    return group, f"{chosen.name},{chosen.filter}"


def listed_mean(name: str) -> dict[str, Any]:
    """Returns the entry of a task's `metric_list` for a metric that is averaged over items."""
    return {"metric": name, "aggregation": "mean", "higher_is_better": True}


def score_with(task: Any, function: MetricFunction) -> None:
    """Makes a function the only metric of a harness task, and marks the task as rescored.

    The function gets the whole generation, or the text of the likeliest choice, without the task's
    filters.

    Args:
        task: A loaded harness task; it is changed.
        function: The metric.

    Raises:
        TaskUnusable: The task has no text output that a function could score.
    """
    kind = task.OUTPUT_TYPE
    several_inputs: int = getattr(task, "multiple_input", 0)
    if kind not in ("generate_until", "multiple_choice") or several_inputs:
        raise TaskUnusable(
            f"`metric`: task '{task.task_name}' requests {kind}, which gives a function no text "
            "to score; name one of its own metrics"
        )
    name = str(getattr(function, "__name__", "metric")).strip("<>")
    try:
        takes_document = list(inspect.signature(function).parameters)[1:2] == ["document"]
    except (TypeError, ValueError):  # some functions that are written in C have no signature
        takes_document = False

    def scored(document: Any, results: Sequence[Any]) -> dict[str, Any]:
        output, answer = results[0], task.doc_to_target(document)
        choices = [] if task.config.doc_to_choice is None else task.doc_to_choice(document)
        if kind == "multiple_choice":
            output = choices[max(range(len(choices)), key=lambda index: results[index][0])]
        try:
            if choices and isinstance(answer, list):
                answer = [one if isinstance(one, str) else choices[one] for one in answer]
            elif choices and isinstance(answer, int | np.integer):
                answer = choices[answer]
            return {name: function(output, document if takes_document else answer)}
        except Exception as error:  # a caller's function may raise anything
            raise TaskUnusable(
                f"`metric` '{name}' of task '{task.task_name}' failed on output {output!r:.60}: "
                f"{type(error).__name__}: {error}"
            ) from error

    config = task._config
    config.process_results = scored
    config.metric_list = [listed_mean(name)]
    config.filter_list = None
    config.metadata = {**(config.metadata or {}), "rescored": True}
    task.process_results = scored
    task.aggregation = lambda: {name: mean}
    task.higher_is_better = lambda: {name: True}
    task._filters = []
