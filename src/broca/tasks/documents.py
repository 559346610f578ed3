"""Documents of an lm-eval task with their requests, whose answers the task's own code scores."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

from broca.errors import refused
from broca.limits import SECONDS, time_limit
from broca.sources import code_digest
from broca.tasks.items import Generation, LogLikelihood, Output, Request
from broca.tasks.metrics import Metric, filters_of

_RIGHT = 1.0 - 1e-9  # minimum score of a right answer

_CHOSEN = ("acc", "acc_norm", "acc_bytes", "acc_mutual_info")
"""Metrics of a choice among several, which guessing gets right at times."""

_LENGTHS: dict[str, Callable[[str], float]] = {
    "acc": lambda choice: 1.0,
    "acc_norm": lambda choice: float(len(choice)),
    "acc_bytes": lambda choice: float(len(choice.encode("utf-8"))),
}
"""The length of a choice by which lm-eval divides its log-likelihood, by metric."""

_SOURCES = (
    "dataset_path", "dataset_name", "dataset_kwargs", "custom_dataset", "training_split",
    "validation_split", "test_split", "fewshot_split", "tag", "task_alias", "metadata",
)  # fmt: skip
"""Settings for the source of the data, which define no task because the items do."""


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
    def scores_itself(self) -> bool:
        """Whether a function of the task computes its metrics, and not lm-eval."""
        overridden = type(self.harness).process_results is not ConfigurableTask.process_results
        return overridden or callable(self.harness.config.process_results)

    @cached_property
    def length(self) -> Callable[[str], float] | None:
        """The length of a choice, if the metric depends only on the likeliest choice.

        This holds if lm-eval computes the metric itself, without a function or filter of the task.
        """
        if self.kind != "multiple_choice" or self.scores_itself or self.harness.config.filter_list:
            return None
        return _LENGTHS.get(self.metric.name)

    @property
    def definition(self) -> dict[str, Any]:
        """All that defines the task but its data, with the digests of its functions' files."""
        config = self.harness.config
        settings = {key: value for key, value in config.to_dict().items() if key not in _SOURCES}
        partial = {name for name in settings if hasattr(getattr(config, name, None), "func")}
        settings |= {name: getattr(config, name) for name in partial}  # as text they have addresses
        metadata = {key: one for key, one in self.metadata.items() if key != "config_source"}
        # a caller's function may change undetected: outputs are shared, scores are not kept
        rescored = bool(metadata.get("rescored"))
        if rescored:
            settings.pop("metric_list", None)
        code = set(map(code_digest, filter(callable, [*vars(config).values(), type(self.harness)])))
        return {
            "name": self.name, "settings": settings, "metadata": metadata,
            "metric": "" if rescored else self.metric.full_name,
            "class": type(self.harness).__qualname__, "code": sorted(code - {""}),
        }  # fmt: skip


def question_texts(task: Any, document: Any) -> tuple[Any, Any, Any]:
    """Returns a document's own texts in its prompt: question, description and answer's prefix."""
    description = task.resolve_field(document, task.config.description)
    return task.doc_to_text(document), description, task.doc_to_prefix(document)


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
    _scores: dict[Hashable, float] = field(repr=False, default_factory=dict)

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
        task = self.part.harness
        text, *around = (" ".join(str(one).split()) for one in question_texts(task, self.fields))
        if getattr(task, "multiple_input", 0):
            text = ""  # the position of the right context
        return repr((text, *around, sorted(self.choices), "" if text else str(self.target)))

    @property
    def target(self) -> Any:
        """The task's target: text, index or several."""
        return self.part.harness.doc_to_target(self.fields)

    @property
    def target_text(self) -> str:
        """The right answer as text; for an index, the text of the choice."""
        target, choices = self.target, self.choices
        if isinstance(target, int | np.integer) and choices and 0 <= target < len(choices):
            return choices[target]
        return str(target)

    @property
    def accepted_target(self) -> str | None:
        """The target of a generation with its delimiter, if the metric accepts it."""
        for text in self.target if isinstance(self.target, list) else [self.target_text]:
            if isinstance(text, str) and self.accepts(f"{self.part.delimiter}{text}"):
                return f"{self.part.delimiter}{text}"
        return None

    @cached_property
    def choices(self) -> list[str]:
        """The choices; none for other kinds of task."""
        task = self.part.harness
        if task.config.doc_to_choice is None:
            return []
        return [str(choice) for choice in task.doc_to_choice(self.fields)]

    @cached_property
    def right_choices(self) -> tuple[int, ...]:
        """The positions of the right choices; none if the task does not state them.

        Those of a task that scores itself are the choices whose score is 1 if they alone are
        likely: its target may be one of several, as that of truthfulqa_mc2.
        """
        task, choices = self.part.harness, self.choices
        if self._own_score and choices and self.part.metric.higher_is_better:
            scores = enumerate(self._scores_of_one_likely)
            if right := tuple(at for at, score in scores if score >= _RIGHT):
                return right
        several_inputs = getattr(task, "multiple_input", 0)
        target = task.doc_to_text(self.fields) if several_inputs else self.target
        indices = [
            choices.index(answer) if isinstance(answer, str) and answer in choices else answer
            for answer in (target if isinstance(target, list) else [target])
        ]
        whole = (int(one) for one in indices if isinstance(one, int | np.integer))
        return tuple(dict.fromkeys(one for one in whole if 0 <= one < len(choices)))

    @property
    def chance(self) -> float:
        """The score of guessing among choices; 0 where nothing is chosen.

        A score of the task's own is the mean over choices of which one alone is likely.
        """
        part, count = self.part, len(self.choices) or len(self.requests)
        several = part.kind == "multiple_choice" or len(self.requests) > 1
        if not several or not ("rescored" in part.metadata or part.metric.name in _CHOSEN):
            return 0.0
        if self._own_score:
            return fmean(self._scores_of_one_likely)
        return max(1, len(self.right_choices)) / count

    @property
    def _own_score(self) -> bool:
        """Whether a function of the task, and not of the caller, computes its score."""
        return self.part.scores_itself and "rescored" not in self.part.metadata

    @property
    def _scores_of_one_likely(self) -> list[float]:
        """The score if one choice alone is likely, for each choice, or else each request."""
        count = len(self.choices) or len(self.requests)
        likely = (99.0 * (np.eye(count, len(self.requests)) - 1)).tolist()
        return [self.score([LogLikelihood(v, not v) for v in row]) for row in likely]

    def metrics(self, outputs: Sequence[Output]) -> dict[str, Any]:
        """Returns all values that the task's code computes from the answers to `requests`."""
        answers = iter(outputs)
        responses: list[Any] = []
        for instance, group in zip(self.instances, self.tokens, strict=True):
            several = [next(answers) for _ in group]
            if instance.request_type == "loglikelihood_rolling":
                responses.append(sum(a.value for a in several if isinstance(a, LogLikelihood)))
            else:
                (answer,) = several
                responses.append(
                    answer.text if isinstance(answer, Generation) else (answer.value, answer.greedy)
                )
        return self._processed(responses)

    def score(self, outputs: Sequence[Output]) -> float:
        """Returns the number of the metric for the answers to `requests`.

        Log-likelihoods differ from mask to mask, but the likeliest choice repeats: calling lm-eval
        once for each saves a fifth of the time of small models.
        """
        decisive: Hashable = tuple(outputs)
        length, choices = self.part.length, self.choices
        values = [output.value for output in outputs if isinstance(output, LogLikelihood)]
        if length is not None and choices and len(values) == len(choices) and all(choices):
            shares = [value / length(text) for value, text in zip(values, choices, strict=True)]
            decisive = int(np.argmax(shares))
        if decisive not in self._scores:
            self._scores[decisive] = self.part.metric.number(self.metrics(outputs), self._name)
        return self._scores[decisive]

    def accepts(self, text: str) -> bool:
        """Whether `text` is a right answer to a generation, its only request."""
        if not self.part.metric.higher_is_better or not text.strip() or len(self.tokens) > 1:
            return False
        return self.part.metric.number(self._processed([text]), self._name) >= _RIGHT

    @property
    def _name(self) -> str:
        return f"item {self.number} of task '{self.part.name}'"

    def _processed(self, responses: Sequence[Any]) -> dict[str, Any]:
        instances, name = list(self.instances), self.part.metric.filter
        for instance, response in zip(instances, responses, strict=True):
            instance.resps = [response] * (instance.repeats or 1)
            instance.filtered_resps = {}
        with refused(f"{self._name} could not be scored"):
            with time_limit(SECONDS, f"the filter of {self._name}"):
                for ensemble in filters_of(self.part.harness):
                    if ensemble.name == name:
                        ensemble.apply(instances)
            filtered = [one.filtered_resps.get(name, one.resps[0]) for one in instances]
            return dict(self.part.harness.process_results(self.fields, filtered))
