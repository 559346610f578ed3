"""One lm-evaluation-harness task, or group of tasks, as broca uses it: items, metric, score."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from broca.options import Reference, TaskOptions
from broca.tasks.groups import TaskGroup
from broca.tasks.items import Item, Output
from broca.tasks.margins import Margin
from broca.tasks.metrics import aggregate, is_weighted, number_of, raw_value
from broca.tasks.options import reference_function
from broca.tasks.prepared import PreparedTask, prepare
from broca.tasks.splits import Split, SplitPart, split_parts
from broca.tasks.tokenizing import RequestTokenizer

_RIGHT = 1.0 - 1e-9
"""Least score of an answer that counts as right."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A task or a group of tasks with its items built and tokenized.

    Attributes:
        name: The task's name.
        items: All its items, task by task, in the order of their documents.
        metric: Name of its main metric.
        higher_is_better: Whether more of the metric is better.
        chance: The score of guessing: 1 / choices for multiple choice, else 0.
        capability: What the task measures, where its metadata says so; else its own name.
        relative: Whether losses are shares of the intact model's score.
        rescored: Whether a caller's function scores it: only outputs may be stored, never scores.
        notes: What the reader should know about how it was asked.
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
            tokenizer: For the model that will be asked.
            metric: The metric to use; see `choose_metric` for the default.
            options: How the task is asked; as its file says by default.
            group: How the tasks are scored together, where there are several.
            require_split: Whether a task without the locate split is refused.

        Raises:
            BadInput: The tokenizer has no chat template, and one is wanted.
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
        built = cls(
            name=name,
            items=items,
            metric=parts[0].metric.full_name,
            higher_is_better=parts[0].metric.higher_is_better,
            chance=0.0,
            capability=str(parts[0].metadata.get("capability", name)) if group is None else name,
            relative=all(part.metadata.get("loss") == "relative" for part in parts),
            rescored=any(part.metadata.get("rescored", False) for part in parts),
            notes=tuple(note for part in parts for note in part.notes),
            _tokenizer=tokenizer,
            _parts=parts,
            _places=places,
            _group=group,
            _reference=reference_function(options) or options.reference,
        )
        return replace(built, chance=built._chance())

    @property
    def task_names(self) -> tuple[str, ...]:
        """Its tasks: one, or those of the group."""
        return tuple(part.name for part in self._parts)

    @property
    def harness_tasks(self) -> tuple[Any, ...]:
        """lm-eval's own task objects, prepared: one, or those of the group."""
        return tuple(part.harness_task for part in self._parts)

    @property
    def kind(self) -> str:
        """Its output type in lm-eval's words; several are joined by `+`."""
        return "+".join(dict.fromkeys(part.kind for part in self._parts))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """What `metric` takes: every metric of all its tasks after every filter."""
        several = [part.metric_names for part in self._parts]
        return tuple(one for one in several[0] if all(one in names for names in several))

    @property
    def cut_items(self) -> int:
        """Items whose prompt was cut to fit the model's context."""
        return sum(any(request.cut for request in item.requests) for item in self.items)

    def split(self, *, items: int, seed: int) -> Split:
        """Cuts the items into `locate`, `confirm` and `report`; see `split_parts`."""
        parts, start = [], 0
        for part in self._parts:
            end, first = start + len(part), start + len(part) - part.located
            parts.append(SplitPart(part.name, range(start, first), range(first, end)))
            start = end
        return split_parts(self.name, parts, items=items, seed=seed)

    def document(self, item: Item) -> Any:
        """The document that an item was made of, with every field that its data hold."""
        part, number = self._place(item)
        return part.document(number)

    def document_place(self, item: Item) -> tuple[str, str, int]:
        """The task of lm-eval, the split and the `doc_id` of the document of an item."""
        part, number = self._place(item)
        return part.name, *part.place(number)

    def metrics(self, item: Item, outputs: Sequence[Output]) -> dict[str, Any]:
        """Everything that the task's own code computes for one item, as lm-eval logs it."""
        part, number = self._place(item)
        return part.metrics(number, outputs)

    def score(self, item: Item, outputs: Sequence[Output]) -> float:
        """Returns the main metric of one item, as the task's own code computes it.

        For a perplexity it is the item's negative log-likelihood (for each word or byte where the
        task counts them), from which `aggregate` makes the perplexity.

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
        """Whether `text` is a right answer to an item that asks for a generation."""
        part, number = self._place(item)
        if not part.metric.higher_is_better or not text.strip():
            return False
        return self._number(part, number, part.metrics_of_text(number, text)) >= _RIGHT

    @property
    def wants_own_answers(self) -> bool:
        """Whether margins take the model's own answers, which have yet to be generated."""
        return self._reference == "own" and any(p.kind == "generate_until" for p in self._parts)

    def answered(self, answers: Mapping[int, str]) -> Benchmark:
        """The same task with right answers of the model's own, by item number, for its margins.

        Until it is called, the task's target stands in for the model's own answer.
        """
        return replace(self, _answers={**(self._answers or {}), **answers})

    def gold_alone(self) -> Benchmark:
        """The same task with margins of the right answer alone: no choice is compared with it."""
        return replace(self, _gold_alone=True)

    def margin(self, item: Item) -> Margin | None:
        """How to ask for the item's margin; None where there is no right answer to ask about.

        Multiple choice compares the right choices with the others. A generation takes an answer
        under teacher forcing, from where the options say; the task's target counts only where the
        task's own metric accepts it as an answer.
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
            return None if answer is None else Margin((self._forced(part, number, answer),), None)
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
                whose items do not count alike.

        Raises:
            ValueError: The items are needed and were not given.
        """
        if items is None:
            if self._group is not None or is_weighted(self._parts[0].metric):
                raise ValueError(f"the score of '{self.name}' depends on its items: give them")
            items = self.items[: len(values)]
        found: dict[int, tuple[list[float], list[int]]] = {}
        for value, item in zip(values, items, strict=True):
            index, number = self._places[item.number]
            own, numbers = found.setdefault(index, ([], []))
            own.append(value)
            numbers.append(number)
        scores = {}
        for index, (own, numbers) in sorted(found.items()):
            part = self._parts[index]
            weights = [part.weight(one) for one in numbers] if is_weighted(part.metric) else None
            scores[part.name] = (aggregate(part.metric, own, weights), len(own))
        if self._group is None:
            return next(iter(scores.values()))[0]
        return self._group.score(scores)

    def loss(self, before: float, after: float) -> float:
        """How much was lost between two scores: positive where the second is worse.

        Where the task's file asks for it (`loss: relative` in its metadata), as a share of the
        first: a count of words has no scale of its own, and so stands beside accuracies.
        """
        lost = before - after if self.higher_is_better else after - before
        if not self.relative:
            return lost
        return lost / before if before > 0 else 0.0

    def at_chance(self, score: float, *, items: int) -> bool:
        """Whether a score over `items` is within one-sided 95 % of guessing, or zero."""
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
        for part, number in self._places:
            asked = self._parts[part]
            count = len(asked.choices(number)) or len(asked.requests(number))
            several = asked.kind in ("multiple_choice", "loglikelihood") and count > 1
            right = max(1, len(asked.right_choices(number))) if several else 0
            guesses.append(right / count if several else 0.0)
        return self.aggregate(guesses, self.items) if any(guesses) else 0.0

    def _gold_answer(self, item: Item, part: PreparedTask, number: int) -> str | None:
        target = part.target(number)
        several = target if isinstance(target, list) else [part.target_text(number)]
        for one in several:
            if isinstance(one, str) and self.right(item, f"{part.delimiter}{one}"):
                return f"{part.delimiter}{one}"
        return None

    def _margin_of_function(
        self, part: PreparedTask, number: int, function: Reference
    ) -> Margin | None:
        answers = function(part.document(number))
        if answers is None:
            return None
        several = [answers] if isinstance(answers, str) else list(answers)
        requests = tuple(
            self._forced(part, number, f"{part.delimiter}{answer}") for answer in several
        )
        return Margin(requests, 0 if len(requests) > 1 else None)

    def _forced(self, part: PreparedTask, number: int, answer: str) -> Any:
        return self._tokenizer.loglikelihood(part.prompt(number), answer)
