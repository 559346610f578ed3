"""One lm-evaluation-harness task as broca uses it: its items, its metric, its score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval.api.instance import Instance

from broca.errors import TaskUnusable
from broca.tasks.items import Generation, Item, LogLikelihood, Output
from broca.tasks.margins import Margin
from broca.tasks.templates import compiled_once
from broca.tasks.tokenizing import RequestTokenizer


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A task with its items built and tokenized.

    Attributes:
        name: The task's name.
        items: All its items, in the order of its documents.
        metric: Name of its main metric.
        higher_is_better: Whether more of the metric is better.
        chance: The score of guessing: 1 / choices for multiple choice, else 0.
        capability: What the task measures, where its metadata says so; else its own name.
    """

    name: str
    items: tuple[Item, ...]
    metric: str
    higher_is_better: bool
    chance: float
    capability: str
    _tokenizer: RequestTokenizer = field(repr=False)
    _task: Any = field(repr=False)
    _instances: tuple[tuple[Instance, ...], ...] = field(repr=False)
    _scored: dict[tuple[int, tuple[Output, ...]], float] = field(repr=False, default_factory=dict)

    @classmethod
    def build(
        cls, task: Any, tokenizer: RequestTokenizer, *, metric: str | None = None
    ) -> Benchmark:
        """Builds and tokenizes every request of a harness task, once.

        Args:
            task: A loaded `lm_eval.api.task.Task`.
            tokenizer: For the model that will be asked.
            metric: The metric to use; the first of the task's own by default.

        Raises:
            TaskUnusable: The task has no items, no such metric, or unsupported requests.
        """
        name = task.task_name
        task.set_fewshot_seed(1234)  # lm-eval's own default
        try:
            with compiled_once():
                task.build_all_requests(rank=0, world_size=1)
        except ValueError as error:
            raise TaskUnusable(f"task '{name}' has no items: {error}") from error
        grouped: dict[int, list[Instance]] = {}
        for instance in task.instances:
            grouped.setdefault(instance.doc_id, []).append(instance)
        instances = tuple(
            tuple(sorted(grouped[number], key=lambda instance: instance.idx))
            for number in sorted(grouped)
        )
        with compiled_once():
            items = tuple(
                Item(
                    task=name,
                    number=number,
                    prompt=str(group[0].args[0]),
                    target=_target_text(task, group[0].doc),
                    requests=tuple(tokenizer.request(instance) for instance in group),
                )
                for number, group in enumerate(instances)
            )
        known = list(task.aggregation())
        metric = metric or next(iter(known), None)
        if metric is None or metric not in known:
            raise TaskUnusable(
                f"task '{name}' has no metric '{metric}': choose one of {', '.join(known)}"
            )
        choices = [len(item.requests) for item in items if item.requests[0].kind == "loglikelihood"]
        chance = (
            sum(1 / count for count in choices) / len(choices)
            if min(choices, default=1) > 1
            else 0.0
        )
        metadata = task.config.metadata or {}
        return cls(
            name=name,
            items=items,
            metric=metric,
            higher_is_better=bool(task.higher_is_better().get(metric, True)),
            chance=chance,
            capability=str(metadata.get("capability", name)),
            _tokenizer=tokenizer,
            _task=task,
            _instances=instances,
        )

    @property
    def cut_items(self) -> int:
        """Items whose prompt was cut to fit the model's context."""
        return sum(any(request.cut for request in item.requests) for item in self.items)

    def score(self, item: Item, outputs: Sequence[Output]) -> float:
        """Returns the main metric of one item, as the task's own code computes it.

        Args:
            item: One of this task's items.
            outputs: The model's answers to its requests, in their order.

        Raises:
            TaskUnusable: The metric is no number for a single item.
        """
        key = (item.number, tuple(outputs))
        if key not in self._scored:
            self._scored[key] = self._compute_score(item, outputs)
        return self._scored[key]

    def _compute_score(self, item: Item, outputs: Sequence[Output]) -> float:
        instances = self._instances[item.number]
        for instance, output in zip(instances, outputs, strict=True):
            instance.resps, instance.filtered_resps = [_harness_response(output)], {}
        for ensemble in getattr(self._task, "_filters", None) or []:
            ensemble.apply(list(instances))
        chosen = next(iter(instances[0].filtered_resps), None)
        responses = [
            instance.resps[0] if chosen is None else instance.filtered_resps[chosen]
            for instance in instances
        ]
        with compiled_once():
            metrics = self._task.process_results(instances[0].doc, responses)
        if self.metric not in metrics:
            raise TaskUnusable(
                f"task '{self.name}' returned no '{self.metric}' for item {item.number}: it "
                f"returned {', '.join(metrics)}"
            )
        value = metrics[self.metric]
        try:
            return float(value)
        except (TypeError, ValueError):
            raise TaskUnusable(
                f"metric '{self.metric}' of task '{self.name}' is no number for a single item "
                f"(it is {type(value).__name__}): choose another metric of the task"
            ) from None

    def margin(self, item: Item) -> Margin | None:
        """How to ask for the item's margin; None where it has no gold answer to compare with.

        Multiple choice compares the gold choice with the others; a generation takes the task's
        target as the answer under teacher forcing.
        """
        instances = self._instances[item.number]
        with compiled_once():
            gold = self._task.doc_to_target(instances[0].doc)
            choices = (
                []
                if self._task.config.doc_to_choice is None
                else self._task.doc_to_choice(instances[0].doc)
            )
        if item.requests[0].kind == "loglikelihood":
            if len(item.requests) == 1:
                return Margin(item.requests, None)
            if isinstance(gold, str):
                gold = choices.index(gold) if gold in choices else None
            if not isinstance(gold, int) or not 0 <= gold < len(choices):
                return None
            return Margin(item.requests[: len(choices)], gold)
        if not isinstance(gold, str) or not gold.strip():
            return None
        answer = f"{self._task.config.target_delimiter}{gold}"
        request = self._tokenizer.loglikelihood(str(instances[0].args[0]), answer)
        return Margin((request,), None)

    def aggregate(self, values: Sequence[float]) -> float:
        """Returns the task's score over several items, by the task's own aggregation."""
        return float(self._task.aggregation()[self.metric](list(values)))

    def loss(self, before: float, after: float) -> float:
        """How much was lost between two scores: positive where the second is worse."""
        return before - after if self.higher_is_better else after - before

    def at_chance(self, score: float, *, items: int) -> bool:
        """Whether a score over `items` is within one-sided 95 % of guessing, or zero."""
        if not self.higher_is_better:
            return False
        deviation = math.sqrt(self.chance * (1 - self.chance) / items)
        return score <= self.chance + 1.645 * deviation


def _harness_response(output: Output) -> Any:
    """An answer in the form that the harness's metrics expect."""
    if isinstance(output, LogLikelihood):
        return (output.value, output.greedy)
    assert isinstance(output, Generation)
    return output.text


def _target_text(task: Any, doc: Any) -> str:
    """The right answer as text: a choice's text where the task stores its index."""
    target = task.doc_to_target(doc)
    if isinstance(target, int) and task.config.doc_to_choice is not None:
        return str(task.doc_to_choice(doc)[target])
    return str(target)
