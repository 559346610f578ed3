"""An lm-eval task whose requests are built once, according to the options."""

from __future__ import annotations

import copy
import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance

from broca.errors import BadInput, TaskUnusable, nearest
from broca.options import LENGTH_NAMES, NEW_TOKENS, TaskOptions
from broca.tasks.code import code_isolation, executes_code
from broca.tasks.deciding import likeliest, takes_likeliest
from broca.tasks.fewshot import document_key, keep_apart, set_fewshot
from broca.tasks.items import Generation, LogLikelihood, Output, Request
from broca.tasks.metrics import Metric, choose_metric, filters_of, full_metric_names, raw_value
from broca.tasks.templates import compiled_once
from broca.tasks.tokenizing import RequestTokenizer

_MOST_LOCATE_DOCUMENTS = 2000
_SEED = 1234  # lm-eval's own default for examples


@dataclass(frozen=True, eq=False)
class PreparedTask:
    """A harness task and the requests of its documents.

    Attributes:
        name: The task's name.
        metric: The metric that is used.
        located: Number of documents from the locate split, which are the last ones.
        delimiter: Text between a prompt and its answer.
        splits: Names of the scored split and of the locate split; empty for none.
        notes: Notes for the reader.
    """

    name: str
    metric: Metric
    located: int
    delimiter: str
    splits: tuple[str, str]
    notes: tuple[str, ...]
    _task: Any = field(repr=False)
    _instances: tuple[tuple[Instance, ...], ...] = field(repr=False)
    _requests: tuple[tuple[tuple[Request, ...], ...], ...] = field(repr=False)
    _chosen: tuple[int, ...] = field(repr=False, default=())
    _choices: dict[int, list[str]] = field(repr=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self._instances)

    @property
    def harness_task(self) -> Any:
        """lm-eval's task object."""
        return self._task

    @property
    def kind(self) -> str:
        """lm-eval's output type of the task."""
        return str(self._task.OUTPUT_TYPE)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of its metrics with each of its filters."""
        return full_metric_names(self._task)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata in the task's file."""
        return dict(self._task.config.metadata or {})

    def prompt(self, number: int) -> str:
        """Returns the prompt of document `number`."""
        return str(self._instances[number][0].args[0])

    def document(self, number: int) -> Any:
        """Returns document `number` of the data."""
        return self._instances[number][0].doc

    def content(self, number: int) -> str:
        """Returns what an item asks, without few-shot examples: equal for equal questions.

        Neither white space nor the order of choices makes another question. The answer counts where
        it is the question: whole texts, and contexts that are chosen.
        """
        with compiled_once():
            question = self._task.doc_to_text(self.document(number))
        text = " ".join(str(question).split())
        asks = text and not getattr(self._task, "multiple_input", 0)
        target = "" if asks else str(self.target(number))
        return repr((text, sorted(self.choices(number)), target))

    def place(self, number: int) -> tuple[str, int]:
        """Returns the split of document `number` and its position there, lm-eval's `doc_id`."""
        place = int(self._instances[number][0].doc_id)
        if number < len(self) - self.located:
            return self.splits[0], place
        return self.splits[1], self._chosen[place]

    def requests(self, number: int) -> tuple[Request, ...]:
        """Returns all requests of document `number`."""
        return tuple(request for group in self._requests[number] for request in group)

    def target(self, number: int) -> Any:
        """Returns the task's target of document `number`: text, index or several."""
        with compiled_once():
            return self._task.doc_to_target(self.document(number))

    def target_text(self, number: int) -> str:
        """Returns the right answer as text; for an index, the text of the choice."""
        target, choices = self.target(number), self.choices(number)
        if isinstance(target, int) and choices and 0 <= target < len(choices):
            return choices[target]
        return str(target)

    def choices(self, number: int) -> list[str]:
        """Returns the choices of document `number`; none for other kinds of task."""
        if self._task.config.doc_to_choice is None:
            return []
        if number not in self._choices:
            with compiled_once():
                written = self._task.doc_to_choice(self.document(number))
            self._choices[number] = [str(choice) for choice in written]
        return self._choices[number]

    def right_choices(self, number: int) -> tuple[int, ...]:
        """Returns the right choices of document `number`; none if the task does not state them."""
        choices = self.choices(number)
        if getattr(self._task, "multiple_input", 0):
            with compiled_once():
                target = self._task.doc_to_text(self.document(number))
        else:
            target = self.target(number)
        answers = target if isinstance(target, list) else [target]
        indices = [
            choices.index(answer) if isinstance(answer, str) and answer in choices else answer
            for answer in answers
        ]
        return tuple(
            index for index in indices if isinstance(index, int) and 0 <= index < len(choices)
        )

    def metrics(self, number: int, outputs: Sequence[Output]) -> dict[str, Any]:
        """Returns all values that the task's code computes for a document.

        Args:
            number: Number of the document.
            outputs: The answers to `requests(number)`, in their order.
        """
        responses, start = [], 0
        for instance, group in zip(self._instances[number], self._requests[number], strict=True):
            answers = outputs[start : start + len(group)]
            start += len(group)
            responses.append(_response(instance, answers))
        return self._processed(number, responses)

    def decisive(self, number: int, outputs: Sequence[Output]) -> Hashable:
        """Returns the part of answers that determines the metric."""
        if not self._takes_likeliest:
            return tuple(outputs)
        return likeliest(self.metric, self.choices(number), outputs)

    @cached_property
    def _takes_likeliest(self) -> bool:
        return takes_likeliest(self._task, self.metric)

    def metrics_of_text(self, number: int, text: str) -> dict[str, Any]:
        """Returns all values that the task's code computes for a document and a generation."""
        return self._processed(number, [text])

    def weight(self, number: int) -> float:
        """Returns the number of words or bytes of document `number` for a perplexity."""
        with compiled_once():
            values = self._task.process_results(self.document(number), [0.0])
        return float(raw_value(self.metric, values, self.item(number))[1])

    def item(self, number: int) -> str:
        """Returns the name of document `number` in messages."""
        return f"item {number} of task '{self.name}'"

    def _processed(self, number: int, responses: Sequence[Any]) -> dict[str, Any]:
        instances = list(self._instances[number])
        for instance, response in zip(instances, responses, strict=True):
            instance.resps = [response] * (instance.repeats or 1)
            instance.filtered_resps = {}
        for ensemble in filters_of(self._task):
            if ensemble.name == self.metric.filter:
                ensemble.apply(instances)
        filtered = [
            instance.filtered_resps.get(self.metric.filter, instance.resps[0])
            for instance in instances
        ]
        with compiled_once():
            return dict(self._task.process_results(instances[0].doc, filtered))


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
) -> PreparedTask:
    """Builds and tokenizes every request of a harness task.

    Args:
        task: A loaded `lm_eval.api.task.Task`; its settings are changed.
        tokenizer: Tokenizer of requests for the model.
        options: Options of the task.
        metric: The metric, as for `choose_metric`.
        require_split: Whether a task without the locate split is refused; otherwise its scored
            documents are used for all parts.

    Raises:
        BadInput: A chat template is requested and the tokenizer has none.
        TaskUnusable: The task has no items that can be scored, no such metric or split, too few
            examples, or unsupported requests.
    """
    from lm_eval.evaluator_utils import get_sample_size

    chosen = choose_metric(task, metric)
    notes = [set_fewshot(task, options.num_fewshot)]
    set_generation(task, options.generation)
    if executes_code(task):
        notes.append(f"{task.task_name} executes what the model writes, within {code_isolation()}")
    scored, locate = _splits(task, options.locate_split or _own_locate_split(task))
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
    with compiled_once():
        excluded, note = keep_apart(task, [scored, locate])
        notes.append(note)
        instances = _built(task, options, chat, limit=get_sample_size(task, options.limit))
        if excluded:
            instances = [
                group for group in instances if document_key(task, group[0].doc) not in excluded
            ]
        located: list[tuple[Instance, ...]] = []
        chosen_documents: list[int] = []
        if locate is not None:
            scored_keys = {document_key(task, group[0].doc) for group in instances}
            twin, chosen_documents = _on_split(task, locate, excluded | scored_keys)
            located = _built(twin, options, chat, limit=None)
        documents = [*instances, *located]
        requests, reasons = [], []
        for group in documents:
            group_requests, reason = _requests_of(task, group, tokenizer)
            requests.append(group_requests)
            reasons.append(reason)
    scorable = [reason == "" for reason in reasons]
    for reason, count in Counter(filter(None, reasons)).items():
        if not any(scorable[: len(instances)]):
            raise TaskUnusable(f"no item of task '{task.task_name}' can be scored: {reason}")
        notes.append(
            f"{count} of {len(documents)} items of {task.task_name} were left out: {reason}"
        )
    if task.OUTPUT_TYPE == "generate_until":
        notes += tokenizer.generation_notes(task.task_name, task.config.generation_kwargs or {})
    return PreparedTask(
        name=task.task_name,
        metric=chosen,
        located=sum(scorable[len(instances) :]),
        delimiter=_delimiter(task, chat=chat is not None),
        splits=(scored or "", locate or ""),
        notes=tuple(note for note in notes if note),
        _task=task,
        _instances=tuple(itertools.compress(documents, scorable)),
        _requests=tuple(itertools.compress(requests, scorable)),
        _chosen=tuple(chosen_documents),
    )


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


def set_generation(task: Any, settings: Mapping[str, Any]) -> None:
    """Replaces settings of a generation task, by lm-eval's rule.

    Args:
        task: A loaded harness task; it is changed.
        settings: The value of `TaskOptions.generation`.
    """
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


def _own_locate_split(task: Any) -> str | None:
    """Returns the locate split that the task's file states, whose items are never reported."""
    stated = (task.config.metadata or {}).get("locate_split")
    return None if stated is None else str(stated)


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
