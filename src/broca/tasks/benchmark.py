"""A task of lm-evaluation-harness, or a group of tasks, with its items, metric and score."""

from __future__ import annotations

import hashlib
import json
import math
import re
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from typing import Any

from scipy import special

from broca.errors import BadInput, refused
from broca.known_paths import place_of
from broca.models.usage import tokenizer_text
from broca.options.running import Reference, TaskOptions
from broca.sources import code_digest
from broca.tasks.documents import Document, PreparedTask
from broca.tasks.items import Item, Margin, Output, Request, Split, SplitPart, split_parts
from broca.tasks.metrics import full_metric_names, scored_group
from broca.tasks.preparation import prepare
from broca.tasks.tokenizer import RequestTokenizer


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
    rescored: bool
    notes: tuple[str, ...]
    _tokenizer: RequestTokenizer = field(repr=False)
    _parts: tuple[PreparedTask, ...] = field(repr=False)
    _documents: tuple[Document, ...] = field(repr=False)
    _repeats: frozenset[int] = field(repr=False)
    _group: Any = field(repr=False)
    _reference: str | Reference = field(repr=False)
    _answers: Mapping[int, str] | None = field(repr=False, default=None)
    _gold_alone: bool = field(repr=False, default=False)

    @classmethod
    def build(
        cls,
        tasks: Sequence[Any],
        tokenizer: RequestTokenizer,
        *,
        name: str | None,
        group: Any,
        metric: str | None,
        options: TaskOptions,
        require_split: bool,
    ) -> Benchmark:
        """Builds and tokenizes every request of a harness task or group, once.

        Args:
            tasks: A loaded `lm_eval.api.task.Task`, or those of a group.
            tokenizer: Tokenizer of requests for the model.
            name: The name of the group or tag; None for a task.
            group: The lm-eval group; None for a task or a tag.
            metric: The metric to use; see `choose_metric` for the default.
            options: Options of the task.
            require_split: Whether a task without the locate split is refused.

        Raises:
            BadInput: A chat template is requested and the tokenizer has none.
            TaskUnusable: A task has no items, no such metric or split, or unsupported requests.
        """
        if name is not None:
            group, metric = scored_group(name, group, tasks, metric=metric)
        prepared = [
            prepare(task, tokenizer, options, metric=metric, require_split=require_split)
            for task in tasks
        ]
        parts, documents_by_task, notes_by_task = zip(*prepared, strict=True)
        documents, notes = [*chain(*documents_by_task)], [*chain(*notes_by_task)]
        first = parts[0]
        title = first.name if name is None else name
        repeats = _repeats(documents)
        if repeats:
            notes.append(
                f"{len(repeats)} of {len(documents)} questions of {title} repeat another one: they "
                "count as one item, so that no question is both searched on and reported"
            )
        built = cls(
            name=title,
            items=tuple(
                Item(title, number, document.prompt, document.target_text, document.requests)
                for number, document in enumerate(documents)
            ),
            metric=first.metric.full_name, higher_is_better=first.metric.higher_is_better,
            chance=0.0,
            capability=title if name else str(first.metadata.get("capability", title)),
            rescored=any(part.metadata.get("rescored", False) for part in parts),
            notes=tuple(notes), _tokenizer=tokenizer, _parts=parts, _documents=tuple(documents),
            _repeats=repeats, _group=group, _reference=reference_of(options),
        )  # fmt: skip
        guesses = [document.chance for document in documents] if built.higher_is_better else []
        return replace(built, chance=built.aggregate(guesses, built.items) if any(guesses) else 0.0)

    @property
    def task_names(self) -> tuple[str, ...]:
        """Names of its task, or of the tasks of the group."""
        return tuple(part.name for part in self._parts)

    @property
    def harness_tasks(self) -> tuple[Any, ...]:
        """lm-eval's prepared task objects: one, or those of the group."""
        return tuple(part.harness for part in self._parts)

    @property
    def kind(self) -> str:
        """lm-eval's output type; several are joined by `+`."""
        return "+".join(dict.fromkeys(part.kind for part in self._parts))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Valid values of `metric`: every metric of all its tasks with every filter."""
        first, *others = [full_metric_names(part.harness) for part in self._parts]
        return tuple(name for name in first if all(name in names for names in others))

    @cached_property
    def documents_digest(self) -> bytes:
        """Digest of all documents in their order, on which the split depends, 16 bytes.

        The name of a task, which may be another path of the same file, is not digested.
        """
        documents = [[one.split, one.place, one.fields] for one in self._documents]
        return _digest([sorted(self._repeats), documents])

    @property
    def cut_items(self) -> int:
        """Number of items whose prompt was truncated to fit the model's context."""
        return sum(any(request.cut for request in item.requests) for item in self.items)

    def split(self, *, items: int, seed: int) -> Split:
        """Splits the items into `locate`, `confirm` and `report`; see `split_parts`.

        Of documents that ask the same, only the first is taken.
        """
        parts = {part.name: SplitPart(part.name, [], []) for part in self._parts}
        for number, document in enumerate(self._documents):
            if number not in self._repeats:
                part = parts[document.part.name]
                (part.located if document.located else part.scored).append(number)
        asks = [document.content for document in self._documents] if len(parts) > 1 else []
        return split_parts(self.name, list(parts.values()), items=items, seed=seed, asks=asks)

    def document(self, item: Item) -> Any:
        """Returns the document of an item, with all its fields."""
        return self._documents[item.number].fields

    def asks(self, item: Item) -> str:
        """Returns what an item asks: equal for equal questions, in another member or split too."""
        return self._documents[item.number].content

    def choices(self, item: Item) -> list[str]:
        """Returns the texts of an item's choices; none for other kinds of task."""
        return self._documents[item.number].choices

    def document_place(self, item: Item) -> tuple[str, str, int]:
        """Returns lm-eval's task, the split and the `doc_id` of an item's document."""
        document = self._documents[item.number]
        return document.part.name, document.split, document.place

    def metrics(self, item: Item, outputs: Sequence[Output]) -> dict[str, Any]:
        """Returns all values that the task's code computes for an item, as lm-eval logs them."""
        return self._documents[item.number].metrics(outputs)

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
        return self._documents[item.number].score(outputs)

    def right(self, item: Item, text: str) -> bool:
        """Whether `text` is a right answer to a generation item."""
        return self._documents[item.number].accepts(text)

    def own_answer(self, item: Item, text: str, first: int) -> str:
        """Returns a generated text as it goes on from its prompt.

        Decoders of many tokenizers remove the space before the first word of a text.

        Args:
            item: One of this task's items.
            text: The text.
            first: Its first token.
        """
        for way in (text, f" {text}"):
            request = self._forced(self._documents[item.number], way)
            if request is not None and request.continuation[0] == first:
                return way
        return text

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
        margin = self._margin(item, self._documents[item.number])
        return margin.gold_alone() if margin is not None and self._gold_alone else margin

    def _margin(self, item: Item, document: Document) -> Margin | None:
        kind, delimiter = document.part.kind, document.part.delimiter
        if callable(self._reference):
            with refused(f"the reference of item {item.number} of task '{item.task}'"):
                given = self._reference(document.fields)
                several = [given] if isinstance(given, str) else given or ()
                answers = [answer for answer in several if answer is not None]
            forced = [self._forced(document, f"{delimiter}{answer}") for answer in answers]
            whole = tuple(request for request in forced if request is not None)
            if not whole or len(whole) < len(forced):
                return None
            return Margin(whole, 0 if len(whole) > 1 else None)
        if kind == "generate_until":
            if self._reference == "own" and self._answers is not None:
                answer = self._answers.get(item.number)
            else:
                answer = document.accepted_target
            request = None if answer is None else self._forced(document, answer)
            return None if request is None else Margin((request,), None)
        if kind == "loglikelihood_rolling" or len(item.requests) == 1:
            return Margin(item.requests, None)
        asked = item.requests[: len(document.choices)]
        distinct = tuple(dict.fromkeys(asked))  # a copy of a right choice is not a wrong one
        right = tuple(dict.fromkeys(distinct.index(asked[at]) for at in document.right_choices))
        if not right or len(right) == len(distinct):
            return None
        return Margin(distinct, right[0] if len(right) == 1 else right)

    def _forced(self, document: Document, answer: str) -> Request | None:
        """Returns the request of an answer.

        None for one without tokens of its own, or that the model's context cannot hold.
        """
        try:
            request = self._tokenizer.loglikelihood(document.prompt, answer)
        except BadInput:
            return None
        return request if request.continuation else None

    def aggregate(self, values: Sequence[float], items: Sequence[Item]) -> float:
        """Returns the task's score over several items, by the task's or group's own aggregation.

        Args:
            values: The score of every item.
            items: The items, in the order of the values.
        """
        by_task: dict[str, list[float]] = {}
        for value, item in zip(values, items, strict=True):
            by_task.setdefault(self._documents[item.number].part.name, []).append(value)
        scores = {
            part.name: float(part.metric.aggregation(by_task[part.name]))
            for part in self._parts
            if part.name in by_task
        }
        if self._group is None:
            return next(iter(scores.values()))
        metric = self._parts[0].metric
        key = f"{metric.name},{metric.filter}"
        aggregated = self._group.aggregate(
            {task: {key: scores[task], "sample_len": len(by_task[task])} for task in scores}
        )
        return float(aggregated[key])

    def loss(self, before: float, after: float) -> float:
        """Returns the loss between two scores, positive if the second is worse."""
        return before - after if self.higher_is_better else after - before

    def at_chance(self, score: float, *, items: int) -> bool:
        """Whether a score over `items` is zero or not above guessing (exact, one-sided 95 %)."""
        if not self.higher_is_better:
            return False
        right = math.ceil(score * items - 1e-9)
        return float(special.bdtrc(right - 1, items, self.chance)) > 0.05


def _repeats(documents: Sequence[Document]) -> frozenset[int]:
    """Returns the positions of documents that ask what another one of their task asks.

    Where another official split is searched, all scored documents stay, and located ones that ask
    the same are left out.
    """
    searched = {document.part.name for document in documents if document.located}
    repeats, known = set(), set[tuple[str, str]]()
    for position, document in enumerate(documents):  # scored ones come first in their task
        key = document.part.name, document.content
        if key in known and (document.located or document.part.name not in searched):
            repeats.add(position)
        known.add(key)
    return frozenset(repeats)


def reference_of(options: TaskOptions) -> str | Reference:
    """Returns `own`, `gold`, or the function that gives right answers.

    Raises:
        BadInput: The file or the function does not exist, or cannot be loaded.
    """
    named: str | Reference = options.reference
    if not isinstance(named, str) or named in ("own", "gold"):
        return named
    file, _, name = named.rpartition(":")
    path = place_of(file)
    if path.suffix != ".py" or not path.is_file():
        raise BadInput(
            f"`reference` '{named}': '{file}' is not a Python file; use FILE.py:FUNCTION"
        )
    try:
        function: Any = runpy.run_path(str(path)).get(name)
    except Exception as error:  # the user's file may raise anything
        raise BadInput(
            f"`reference` '{named}': the file could not be run: {type(error).__name__}: {error}"
        ) from error
    if not callable(function):
        raise BadInput(f"`reference` '{named}': '{file}' has no function '{name}'")
    return function  # type: ignore[no-any-return]


def definition_digest(benchmark: Benchmark) -> bytes:
    """Returns the digest of a task's settings, its functions' files and lm-eval's version.

    The path of its data and the metric function of a rescored task are not digested: a task that is
    copied to another folder is the same task.
    """
    definitions = [part.definition for part in benchmark._parts]
    return _digest([version("lm-eval"), benchmark.name, definitions])


def item_digests(benchmark: Benchmark, items: Sequence[Item]) -> list[bytes]:
    """Returns the digest of every item: its task's definition, its document, its requests' tokens.

    Equal digests, of 16 bytes, mean the same question, scored in the same way.
    """
    definition = definition_digest(benchmark).hex()
    return [
        _digest([definition, benchmark.document(item), _contents(item.requests)]) for item in items
    ]


def margin_digest(benchmark: Benchmark, item: Item, digest: bytes) -> bytes:
    """Returns the digest of an item's margin, which includes the compared answers, 16 bytes.

    Args:
        benchmark: Task of the item.
        item: The item.
        digest: Digest of the item, which is returned if it has no margin.
    """
    margin = benchmark.margin(item)
    if margin is None:
        return digest
    return _digest([digest.hex(), _contents(margin.requests), margin.gold])


def tokenizer_digest(tokenizer: Any) -> str:
    """Returns the digest of a tokenizer and its special tokens, as claims have it: 32 digits."""
    content = tokenizer_text(tokenizer) or sorted(tokenizer.get_vocab().items())
    return _digest([content, sorted(map(str, tokenizer.special_tokens_map.items()))]).hex()


def _contents(requests: Sequence[Request]) -> list[Any]:
    return [
        [
            request.kind, request.context, request.continuation, request.stop,
            request.max_new_tokens, *([request.settings] if request.settings else []),
        ]
        for request in requests
    ]  # fmt: skip


def _digest(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _plain(value: Any) -> Any:
    """Returns a function or class as its name and its file's digest, and anything else as text.

    The order of a set and the address of an object may be others in every process.
    """
    if not callable(value):
        text = str(sorted(map(str, value)) if isinstance(value, set | frozenset) else value)
        return re.sub(r" at 0x[0-9A-Fa-f]+", "", text)  # such as an image's
    code = getattr(value, "func", value)  # of a partial function
    name = getattr(code, "__qualname__", type(code).__qualname__)
    return [name, code_digest(code), getattr(value, "args", ()), getattr(value, "keywords", {})]
