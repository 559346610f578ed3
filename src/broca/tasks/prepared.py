"""An lm-eval task whose requests are built once, according to the options."""

from __future__ import annotations

import copy
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask
from lm_eval.evaluator_utils import get_sample_size
from lm_eval.utils import env

from broca.errors import BadInput, TaskUnusable, nearest
from broca.options import LENGTH_NAMES, NEW_TOKENS, TaskOptions
from broca.tasks.code import code_isolation, executes_code
from broca.tasks.fewshot import document_key, keep_apart, set_fewshot
from broca.tasks.items import Generation, LogLikelihood, Output, Request
from broca.tasks.metrics import (
    Metric,
    choose_metric,
    filter_names,
    filters_of,
    number_of,
    raw_value,
)
from broca.tasks.tokenizing import RequestTokenizer

_MOST_LOCATE_DOCUMENTS = 2000
_RIGHT = 1.0 - 1e-9  # minimum score of a right answer
_SEED = 1234  # lm-eval's own default for examples


_LENGTHS: dict[str, Callable[[str], float]] = {
    "acc": lambda choice: 1.0,
    "acc_norm": lambda choice: float(len(choice)),
    "acc_bytes": lambda choice: float(len(choice.encode("utf-8"))),
}
"""The length of a choice by which lm-eval divides its log-likelihood, by metric."""

if not hasattr(env.from_string, "cache_info"):
    # lm-eval compiles a template again for every document and score, which takes longer than
    # running a small model
    env.from_string = lru_cache(4096)(env.from_string)


@dataclass(frozen=True, eq=False)
class PreparedTask:
    """A harness task, prepared by the options.

    Attributes:
        name: The task's name.
        metric: The metric that is used.
        delimiter: Text between a prompt and its answer.
        harness: lm-eval's task object.
    """

    name: str
    metric: Metric
    delimiter: str
    harness: Any = field(repr=False)

    @property
    def kind(self) -> str:
        """lm-eval's output type of the task."""
        return str(self.harness.OUTPUT_TYPE)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata in the task's file."""
        return dict(self.harness.config.metadata or {})

    @cached_property
    def length(self) -> Callable[[str], float] | None:
        """The length of a choice, if the metric depends only on the likeliest choice.

        This holds if lm-eval computes the metric itself, without a function or filter of the task.
        """
        overridden = type(self.harness).process_results is not ConfigurableTask.process_results
        if (
            self.kind != "multiple_choice"
            or overridden
            or callable(self.harness.config.process_results)
            or filter_names(self.harness) != ["none"]
        ):
            return None
        return _LENGTHS.get(self.metric.name)


@dataclass(frozen=True, eq=False)
class Document:
    """A document of a prepared task, with its requests.

    Attributes:
        part: Its task.
        number: Its position among the task's documents, for messages.
        split: Official split that it comes from; empty if unknown.
        place: Its position there, lm-eval's `doc_id`.
        located: Whether it comes from the locate split.
        instances: lm-eval's requests.
        tokens: The requests of each of them, in tokens.
    """

    part: PreparedTask
    number: int
    split: str
    place: int
    located: bool
    instances: tuple[Instance, ...] = field(repr=False)
    tokens: tuple[tuple[Request, ...], ...] = field(repr=False)

    @property
    def fields(self) -> Any:
        """The document itself."""
        return self.instances[0].doc

    @property
    def prompt(self) -> str:
        """The prompt of its first request."""
        return str(self.instances[0].args[0])

    @property
    def requests(self) -> tuple[Request, ...]:
        """All its requests."""
        return tuple(request for group in self.tokens for request in group)

    @cached_property
    def content(self) -> str:
        """What it asks, without few-shot examples: equal for equal questions.

        Neither white space nor the order of choices makes another question. The answer counts where
        it is the question: whole texts, and contexts that are chosen.
        """
        text = " ".join(str(self.part.harness.doc_to_text(self.fields)).split())
        asks = text and not getattr(self.part.harness, "multiple_input", 0)
        return repr((text, sorted(self.choices), "" if asks else str(self.target)))

    @property
    def target(self) -> Any:
        """The task's target: text, index or several."""
        return self.part.harness.doc_to_target(self.fields)

    @property
    def target_text(self) -> str:
        """The right answer as text; for an index, the text of the choice."""
        target, choices = self.target, self.choices
        if isinstance(target, int) and choices and 0 <= target < len(choices):
            return choices[target]
        return str(target)

    @cached_property
    def choices(self) -> list[str]:
        """The choices; none for other kinds of task."""
        task = self.part.harness
        if task.config.doc_to_choice is None:
            return []
        return [str(choice) for choice in task.doc_to_choice(self.fields)]

    @property
    def right_choices(self) -> tuple[int, ...]:
        """The positions of the right choices; none if the task does not state them."""
        task, choices = self.part.harness, self.choices
        several_inputs = getattr(task, "multiple_input", 0)
        target = task.doc_to_text(self.fields) if several_inputs else self.target
        indices = [
            choices.index(answer) if isinstance(answer, str) and answer in choices else answer
            for answer in (target if isinstance(target, list) else [target])
        ]
        return tuple(
            index for index in indices if isinstance(index, int) and 0 <= index < len(choices)
        )

    def metrics(self, outputs: Sequence[Output]) -> dict[str, Any]:
        """Returns all values that the task's code computes from the answers to `requests`."""
        answers = iter(outputs)
        return self._processed(
            [
                _response(instance, [next(answers) for _ in group])
                for instance, group in zip(self.instances, self.tokens, strict=True)
            ]
        )

    def decisive(self, outputs: Sequence[Output]) -> Hashable:
        """Returns the part of the answers that determines the metric.

        Log-likelihoods differ from mask to mask, but the likeliest choice repeats: calling lm-eval
        once for each saves a fifth of the time of small models.
        """
        length, choices = self.part.length, self.choices
        values = [output.value for output in outputs if isinstance(output, LogLikelihood)]
        if length is None or not choices or len(values) != len(choices) or not all(choices):
            return tuple(outputs)
        shares = [value / length(text) for value, text in zip(values, choices, strict=True)]
        return int(np.argmax(shares))

    def score(self, outputs: Sequence[Output]) -> float:
        """Returns the number of the metric for the answers to `requests`."""
        return self._number(self.metrics(outputs))

    def accepts(self, text: str) -> bool:
        """Whether `text` is a right answer to a generation."""
        if not self.part.metric.higher_is_better or not text.strip():
            return False
        return self._number(self._processed([text])) >= _RIGHT

    @property
    def weight(self) -> float:
        """The number of words or bytes, for a perplexity."""
        values = self.part.harness.process_results(self.fields, [0.0])
        return float(raw_value(self.part.metric, values, self._name)[1])

    @property
    def _name(self) -> str:
        return f"item {self.number} of task '{self.part.name}'"

    def _number(self, values: dict[str, Any]) -> float:
        metric = self.part.metric
        return number_of(metric, raw_value(metric, values, self._name), self._name)

    def _processed(self, responses: Sequence[Any]) -> dict[str, Any]:
        instances, name = list(self.instances), self.part.metric.filter
        for instance, response in zip(instances, responses, strict=True):
            instance.resps = [response] * (instance.repeats or 1)
            instance.filtered_resps = {}
        for ensemble in filters_of(self.part.harness):
            if ensemble.name == name:
                ensemble.apply(instances)
        filtered = [instance.filtered_resps.get(name, instance.resps[0]) for instance in instances]
        return dict(self.part.harness.process_results(self.fields, filtered))


def _response(instance: Instance, answers: Sequence[Output]) -> Any:
    """Returns answers to a harness request in the form that the harness's metrics expect."""
    if instance.request_type == "loglikelihood_rolling":
        return sum(answer.value for answer in answers if isinstance(answer, LogLikelihood))
    (answer,) = answers
    if isinstance(answer, LogLikelihood):
        return (answer.value, answer.greedy)
    assert isinstance(answer, Generation)
    return answer.text


def prepare(
    task: Any,
    tokenizer: RequestTokenizer,
    options: TaskOptions,
    *,
    metric: str | None = None,
    require_split: bool = True,
) -> tuple[PreparedTask, list[Document], list[str]]:
    """Builds and tokenizes every request of a harness task.

    Args:
        task: A loaded `lm_eval.api.task.Task`; its settings are changed.
        tokenizer: Tokenizer of requests for the model.
        options: Options of the task.
        metric: The metric, as for `choose_metric`.
        require_split: Whether a task without the locate split is refused; otherwise its scored
            documents are used for all parts.

    Returns:
        The task, its documents, those of the locate split last, and notes for the reader.

    Raises:
        BadInput: A chat template is requested and the tokenizer has none.
        TaskUnusable: The task has no items that can be scored, no such metric or split, too few
            examples, or unsupported requests.
    """
    chosen = choose_metric(task, metric)
    notes = [set_fewshot(task, options.num_fewshot)]
    _set_generation(task, options.generation)
    if executes_code(task):
        notes.append(f"{task.task_name} executes what the model writes, within {code_isolation()}")
    own_split = (task.config.metadata or {}).get("locate_split")
    scored, locate = _splits(task, options.locate_split or own_split)
    if options.locate_split is not None and locate is None:
        if require_split:
            require_locate_split(task, options.locate_split)
        notes.append(
            f"{task.task_name} has no split {options.locate_split} besides the scored one: its "
            "scored documents were cut in three"
        )
    chat: Callable[..., str] | None = None
    if options.chat_template:
        tokenizer.require_chat_template()
        chat = tokenizer.chat
    excluded, note = keep_apart(task, [scored, locate])
    notes.append(note)
    groups = [
        (scored or "", group[0].doc_id, False, group)
        for group in _built(task, options, chat, limit=get_sample_size(task, options.limit))
        if not excluded or document_key(task, group[0].doc) not in excluded
    ]
    if locate is not None:
        scored_keys = {document_key(task, group[0].doc) for *_, group in groups}
        twin, places = _on_split(task, locate, excluded | scored_keys)
        located = _built(twin, options, chat, limit=None)
        groups += [(locate, places[group[0].doc_id], True, group) for group in located]
    prepared = PreparedTask(task.task_name, chosen, _delimiter(task, chat=chat is not None), task)
    documents: list[Document] = []
    reasons: Counter[str] = Counter()
    for split, place, is_located, group in groups:
        requests, reason = _requests_of(task, group, tokenizer)
        if reason:
            reasons[reason] += 1
        else:
            number = len(documents)
            documents.append(
                Document(prepared, number, split, int(place), is_located, group, requests)
            )
    for reason, count in reasons.items():
        if all(document.located for document in documents):
            raise TaskUnusable(f"no item of task '{task.task_name}' can be scored: {reason}")
        notes.append(f"{count} of {len(groups)} items of {task.task_name} were left out: {reason}")
    if task.OUTPUT_TYPE == "generate_until":
        notes += tokenizer.generation_notes(task.task_name, task.config.generation_kwargs or {})
    return prepared, documents, list(filter(None, notes))


def _requests_of(
    task: Any, group: Sequence[Instance], tokenizer: RequestTokenizer
) -> tuple[tuple[tuple[Request, ...], ...], str]:
    """Returns the requests of a document, and why they cannot be scored; empty if they can."""
    try:
        requests = tuple(map(tokenizer.requests, group))
    except TaskUnusable:
        raise
    except BadInput as error:
        return (), str(error)
    if not all(requests) or not _has_answer(task, group):
        return (), "their targets are empty, so that there is nothing to score"
    if any(request.merged for (request, *_) in requests):
        prompts = [instance.args[0] for instance in group]
        choices = tokenizer.choices(prompts, [request for (request,) in requests])
        requests = tuple((choice,) for choice in choices)
    return requests, ""


def _delimiter(task: Any, *, chat: bool) -> str:
    """Returns lm-eval's delimiter before a choice; in a chat template, only that of a prefix."""
    prefix = task.get_config("gen_prefix")
    if chat and (not prefix or prefix[-1:].isspace()):
        return ""
    return str(task.config.target_delimiter)


def _set_generation(task: Any, settings: Mapping[str, Any]) -> None:
    """Replaces settings of a generation task, by lm-eval's rule."""
    if task.OUTPUT_TYPE != "generate_until" or not settings:
        return
    stated = dict(task.config.generation_kwargs or {})
    if NEW_TOKENS in settings:
        stated = {name: value for name, value in stated.items() if name not in LENGTH_NAMES}
    task.set_config("generation_kwargs", {**stated, **settings})


def _built(
    task: Any, options: TaskOptions, chat: Callable[..., str] | None, *, limit: int | None
) -> list[tuple[Instance, ...]]:
    """Builds the requests of every document."""
    task.set_fewshot_seed(_SEED)
    try:
        task.build_all_requests(
            limit=limit,
            rank=0,
            world_size=1,
            system_instruction=options.system_prompt,
            apply_chat_template=chat is not None,
            fewshot_as_multiturn=options.fewshot_as_multiturn,
            chat_template=chat,
        )
    except ValueError as error:
        raise TaskUnusable(f"task '{task.task_name}' has no items: {error}") from error
    grouped: dict[int, list[Instance]] = {}
    for instance in task.instances:
        grouped.setdefault(instance.doc_id, []).append(instance)
    return [
        tuple(sorted(grouped[number], key=lambda instance: instance.idx))
        for number in sorted(grouped)
    ]


def _splits(task: Any, locate_split: str | None) -> tuple[str | None, str | None]:
    """Returns the names of the scored split and of the requested locate split."""
    config = task.config
    scored = config.test_split or config.validation_split
    if locate_split is None:
        return scored, None
    official = {"train": config.training_split, "training": config.training_split}
    official |= {"validation": config.validation_split, "test": config.test_split}
    name = official.get(locate_split) or locate_split
    dataset = getattr(task, "dataset", None) or {}
    return scored, name if name in dataset and name != scored else None


def require_locate_split(task: Any, split: str) -> None:
    """Refuses a locate split that a task does not have besides the scored split.

    Raises:
        TaskUnusable: The task has no such split.
    """
    scored, locate = _splits(task, split)
    if locate is None:
        others = [str(name) for name in getattr(task, "dataset", None) or {} if name != scored]
        raise TaskUnusable(
            f"`locate_split`: task '{task.task_name}' has no split '{split}' beside the scored one "
            f"({scored}){nearest(split, others)}: "
            + (f"it has {', '.join(others)}" if others else "leave the option out")
        )


def _on_split(task: Any, split: str, excluded: frozenset[str]) -> tuple[Any, list[int]]:
    """Returns the task on documents of another split, drawn by its name, and their positions."""
    documents = task.dataset[split]
    if task.config.process_docs is not None:
        documents = task.config.process_docs(documents)
    order = np.random.default_rng(zlib.crc32(task.task_name.encode())).permutation(len(documents))
    chosen: list[int] = []
    for position in order:
        if len(chosen) == _MOST_LOCATE_DOCUMENTS:
            break
        if document_key(task, documents[int(position)]) not in excluded:
            chosen.append(int(position))
    twin = copy.copy(task)
    twin._config = copy.copy(task._config)
    twin._config.process_docs = None
    twin._config.test_split = split
    chosen.sort()
    twin.dataset = {split: [documents[position] for position in chosen]}
    return twin, chosen


def _has_answer(task: Any, group: Sequence[Instance]) -> bool:
    """Whether a document has an answer that a model can give.

    An empty target is possible if a stop string can end the generation at once.
    """
    if task.OUTPUT_TYPE != "generate_until" or callable(task.config.process_results):
        return True
    if any(group[0].args[1].get("until") or ()):
        return True
    target = task.doc_to_target(group[0].doc)
    return not isinstance(target, str) or bool(target.strip())
