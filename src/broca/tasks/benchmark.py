"""A task of lm-evaluation-harness, or a group of tasks, with its items, metric and score."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from broca.errors import BadInput
from broca.options import Reference, TaskOptions
from broca.tasks.groups import TaskGroup
from broca.tasks.items import Item, Output, Request
from broca.tasks.margins import Margin
from broca.tasks.metrics import aggregate, is_weighted, number_of, raw_value
from broca.tasks.options import reference_function
from broca.tasks.prepared import PreparedTask, prepare
from broca.tasks.splits import Split, SplitPart, split_parts
from broca.tasks.tokenizing import RequestTokenizer

_RIGHT = 1.0 - 1e-9
"""Minimum score of a right answer."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A task or a group of tasks with its items built and tokenized.

    Attributes:
        name: The task's name.
        items: All its items, task by task, in the order of their documents.
        metric: Name of its main metric.
        higher_is_better: Whether more of the metric is better.
        chance: The score of guessing: 1 / choices for multiple choice, else 0.
        capability: The capability that the task measures, by its metadata; else its name.
        relative: Whether losses are shares of the intact model's score.
        rescored: Whether a caller's function scores it, so that only outputs are stored, not
            scores.
        notes: Notes for the reader about its prompts and items.
    """

    name: str
    items: tuple[Item, ...]
    metric: str
    higher_is_better: bool
    chance: float
    capability: str
    relative: bool
    rescored: bool
    notes: tuple[str, ...]
    _tokenizer: RequestTokenizer = field(repr=False)
    _parts: tuple[PreparedTask, ...] = field(repr=False)
    _places: tuple[tuple[int, int], ...] = field(repr=False)
    _group: TaskGroup | None = field(repr=False)
    _reference: str | Reference = field(repr=False)
    _repeats: frozenset[int] = field(repr=False)
    _answers: Mapping[int, str] | None = field(repr=False, default=None)
    _gold_alone: bool = field(repr=False, default=False)
    _scored: dict[tuple[int, Hashable], float] = field(repr=False, default_factory=dict)

    @classmethod
    def build(
        cls,
        tasks: Any,
        tokenizer: RequestTokenizer,
        *,
        metric: str | None = None,
        options: TaskOptions | None = None,
        group: TaskGroup | None = None,
        require_split: bool = True,
    ) -> Benchmark:
        """Builds and tokenizes every request of a harness task or group, once.

        Args:
            tasks: A loaded `lm_eval.api.task.Task`, or those of a group.
            tokenizer: Tokenizer of requests for the model.
            metric: The metric to use; see `choose_metric` for the default.
            options: Options of the task; by default those of its file.
            group: Aggregation of several tasks.
            require_split: Whether a task without the locate split is refused.

        Raises:
            BadInput: A chat template is requested and the tokenizer has none.
            TaskUnusable: A task has no items, no such metric or split, or unsupported requests.
        """
        options = options or TaskOptions()
        parts = tuple(
            prepare(
                task,
                tokenizer,
                options,
                metric=metric if group is None else group.metric,
                require_split=require_split,
            )
            for task in (tasks if isinstance(tasks, list | tuple) else [tasks])
        )
        name = parts[0].name if group is None else group.name
        places = tuple(
            (index, number) for index, part in enumerate(parts) for number in range(len(part))
        )
        items = tuple(
            Item(
                task=name,
                number=position,
                prompt=parts[part].prompt(number),
                target=parts[part].target_text(number),
                requests=parts[part].requests(number),
            )
            for position, (part, number) in enumerate(places)
        )
        repeats = _repeats(parts, places)
        notes = [note for part in parts for note in part.notes]
        if repeats:
            notes.append(
                f"{len(repeats)} of {len(items)} documents of {name} ask what another one asks: "
                "they are merged with it, so that no question is on both sides of the split"
            )
        built = cls(
            name=name,
            items=items,
            metric=parts[0].metric.full_name,
            higher_is_better=parts[0].metric.higher_is_better,
            chance=0.0,
            capability=str(parts[0].metadata.get("capability", name)) if group is None else name,
            relative=all(part.metadata.get("loss") == "relative" for part in parts),
            rescored=any(part.metadata.get("rescored", False) for part in parts),
            notes=tuple(notes),
            _tokenizer=tokenizer,
            _parts=parts,
            _places=places,
            _group=group,
            _reference=reference_function(options) or options.reference,
            _repeats=repeats,
        )
        return replace(built, chance=built._chance())

    @property
    def task_names(self) -> tuple[str, ...]:
        """Names of its task, or of the tasks of the group."""
        return tuple(part.name for part in self._parts)

    @property
    def harness_tasks(self) -> tuple[Any, ...]:
        """lm-eval's prepared task objects: one, or those of the group."""
        return tuple(part.harness_task for part in self._parts)

    @property
    def kind(self) -> str:
        """lm-eval's output type; several are joined by `+`."""
        return "+".join(dict.fromkeys(part.kind for part in self._parts))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Valid values of `metric`: every metric of all its tasks with every filter."""
        first, *others = [part.metric_names for part in self._parts]
        return tuple(name for name in first if all(name in names for names in others))

    @property
    def cut_items(self) -> int:
        """Number of items whose prompt was truncated to fit the model's context."""
        return sum(any(request.cut for request in item.requests) for item in self.items)

    def split(self, *, items: int, seed: int) -> Split:
        """Splits the items into `locate`, `confirm` and `report`; see `split_parts`.

        Of documents that ask the same, only the first is taken.
        """
        parts, start = [], 0
        for part in self._parts:
            end, first = start + len(part), start + len(part) - part.located
            scored, located = (
                [position for position in range(*ends) if position not in self._repeats]
                for ends in ((start, first), (first, end))
            )
            parts.append(SplitPart(part.name, scored, located))
            start = end
        return split_parts(self.name, parts, items=items, seed=seed)

    def document(self, item: Item) -> Any:
        """Returns the document of an item, with all its fields."""
        part, number = self._place(item)
        return part.document(number)

    def document_place(self, item: Item) -> tuple[str, str, int]:
        """Returns lm-eval's task, the split and the `doc_id` of an item's document."""
        part, number = self._place(item)
        return part.name, *part.place(number)

    def metrics(self, item: Item, outputs: Sequence[Output]) -> dict[str, Any]:
        """Returns all values that the task's code computes for an item, as lm-eval logs them."""
        part, number = self._place(item)
        return part.metrics(number, outputs)

    def score(self, item: Item, outputs: Sequence[Output]) -> float:
        """Returns the main metric of an item, as the task's code computes it.

        For a perplexity it is the item's negative log-likelihood (per word or byte if the task
        counts them), from which `aggregate` computes the perplexity.

        Args:
            item: One of this task's items.
            outputs: The model's answers to its requests, in their order.

        Raises:
            TaskUnusable: The metric is not a number for a single item.
        """
        part, number = self._place(item)
        key = (item.number, part.decisive(number, outputs))
        if key not in self._scored:
            self._scored[key] = self._number(part, number, part.metrics(number, outputs))
        return self._scored[key]

    def right(self, item: Item, text: str) -> bool:
        """Whether `text` is a right answer to a generation item."""
        part, number = self._place(item)
        if not part.metric.higher_is_better or not text.strip():
            return False
        return self._number(part, number, part.metrics_of_text(number, text)) >= _RIGHT

    @property
    def wants_own_answers(self) -> bool:
        """Whether margins use the model's own answers, which are not generated yet."""
        return self._reference == "own" and any(p.kind == "generate_until" for p in self._parts)

    def answered(self, answers: Mapping[int, str]) -> Benchmark:
        """Returns the task with right answers of the model, by item number, for its margins.

        Before that, margins use the task's target.
        """
        return replace(self, _answers={**(self._answers or {}), **answers})

    def gold_alone(self) -> Benchmark:
        """Returns the task with margins of the right answer only, without the other choices."""
        return replace(self, _gold_alone=True)

    def margin(self, item: Item) -> Margin | None:
        """Returns the requests of the item's margin; None if it has no right answer.

        Multiple choice compares the right choices with the others. A generation uses an answer
        under teacher forcing, chosen by the options; the task's target is used only if the task's
        own metric accepts it as an answer.
        """
        margin = self._margin(item)
        return margin.gold_alone() if margin is not None and self._gold_alone else margin

    def _margin(self, item: Item) -> Margin | None:
        part, number = self._place(item)
        if callable(self._reference):
            return self._margin_of_function(part, number, self._reference)
        if part.kind == "generate_until":
            if self._reference == "own" and self._answers is not None:
                answer = self._answers.get(item.number)
            else:
                answer = self._gold_answer(item, part, number)
            if answer is None or (request := self._forced(part, number, answer)) is None:
                return None
            return Margin((request,), None)
        if part.kind == "loglikelihood_rolling" or len(item.requests) == 1:
            return Margin(item.requests, None)
        choices, right = len(part.choices(number)), part.right_choices(number)
        if not right or len(set(right)) == choices:
            return None
        return Margin(item.requests[:choices], right[0] if len(right) == 1 else right)

    def aggregate(self, values: Sequence[float], items: Sequence[Item] | None = None) -> float:
        """Returns the task's score over several items, by the task's or group's own aggregation.

        Args:
            values: The score of every item.
            items: The items, in the order of the values; needed for groups and for perplexities,
                whose items have different weights.

        Raises:
            ValueError: The items are needed and missing.
        """
        if items is None:
            if self._group is not None or is_weighted(self._parts[0].metric):
                raise ValueError(f"the score of '{self.name}' depends on its items: give them")
            items = self.items[: len(values)]
        by_part: dict[int, tuple[list[float], list[int]]] = {}
        for value, item in zip(values, items, strict=True):
            index, number = self._places[item.number]
            part_values, numbers = by_part.setdefault(index, ([], []))
            part_values.append(value)
            numbers.append(number)
        scores = {}
        for index, (part_values, numbers) in sorted(by_part.items()):
            part = self._parts[index]
            weights = list(map(part.weight, numbers)) if is_weighted(part.metric) else None
            scores[part.name] = (aggregate(part.metric, part_values, weights), len(part_values))
        if self._group is None:
            return next(iter(scores.values()))[0]
        return self._group.score(scores)

    def loss(self, before: float, after: float) -> float:
        """Returns the loss between two scores, positive if the second is worse.

        If the task's metadata has `loss: relative`, the loss is a share of the first score, which
        makes a count of words comparable with accuracies.
        """
        lost = before - after if self.higher_is_better else after - before
        if not self.relative:
            return lost
        return lost / before if before > 0 else 0.0

    def at_chance(self, score: float, *, items: int) -> bool:
        """Whether a score over `items` is zero or not above guessing (one-sided 95 %)."""
        if not self.higher_is_better:
            return False
        deviation = math.sqrt(self.chance * (1 - self.chance) / items)
        return score <= self.chance + 1.645 * deviation

    def _place(self, item: Item) -> tuple[PreparedTask, int]:
        index, number = self._places[item.number]
        return self._parts[index], number

    @staticmethod
    def _number(part: PreparedTask, number: int, values: dict[str, Any]) -> float:
        name = part.item(number)
        return number_of(part.metric, raw_value(part.metric, values, name), name)

    def _chance(self) -> float:
        if not self.higher_is_better:
            return 0.0
        guesses = []
        for index, number in self._places:
            part = self._parts[index]
            count = len(part.choices(number)) or len(part.requests(number))
            several = part.kind in ("multiple_choice", "loglikelihood") and count > 1
            right = max(1, len(part.right_choices(number))) if several else 0
            guesses.append(right / count if several else 0.0)
        return self.aggregate(guesses, self.items) if any(guesses) else 0.0

    def _gold_answer(self, item: Item, part: PreparedTask, number: int) -> str | None:
        target = part.target(number)
        targets = target if isinstance(target, list) else [part.target_text(number)]
        for text in targets:
            if isinstance(text, str) and self.right(item, f"{part.delimiter}{text}"):
                return f"{part.delimiter}{text}"
        return None

    def _margin_of_function(
        self, part: PreparedTask, number: int, function: Reference
    ) -> Margin | None:
        answers = function(part.document(number))
        if answers is None:
            return None
        several = [answers] if isinstance(answers, str) else list(answers)
        forced = [self._forced(part, number, f"{part.delimiter}{answer}") for answer in several]
        requests = tuple(request for request in forced if request is not None)
        if len(requests) < len(forced):
            return None
        return Margin(requests, 0 if len(requests) > 1 else None)

    def _forced(self, part: PreparedTask, number: int, answer: str) -> Request | None:
        """Returns the request of an answer; None for one that the model's context cannot hold."""
        try:
            return self._tokenizer.loglikelihood(part.prompt(number), answer)
        except BadInput:
            return None


def _repeats(parts: Sequence[PreparedTask], places: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Returns the positions of items that ask what another item of their task asks.

    Where another official split is searched, all scored items stay, and items that ask the same are
    taken from that split.
    """
    repeats = set()
    known: dict[int, set[str]] = {index: set() for index in range(len(parts))}
    for position, (index, number) in enumerate(places):  # scored items come first in their task
        content, part = parts[index].content(number), parts[index]
        scored = number < len(part) - part.located
        if content in known[index] and not (scored and part.located):
            repeats.add(position)
        known[index].add(content)
    return frozenset(repeats)
