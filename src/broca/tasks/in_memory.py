"""lm-eval tasks from examples in memory, and metrics that are functions."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Sequence
from typing import Any

from lm_eval.api.metrics import mean
from lm_eval.api.task import ConfigurableTask

from broca.errors import TaskUnusable
from broca.tasks.examples import ANSWER_METRICS, MetricFunction, Task
from broca.tasks.tokenizing import RequestTokenizer

SLACK = 8
"""Number of tokens by which a generation may exceed the longest answer."""

_FIELDS = {
    "generate_until": ("prompt", "answer"),
    "loglikelihood": ("prompt", "answer"),
    "multiple_choice": ("prompt", "choices", "label"),
}
_METRICS = {
    "generate_until": ANSWER_METRICS,
    "loglikelihood": ("acc",),
    "multiple_choice": ("acc", "acc_norm"),
}


_BEFORE_WORDS = "\"'`*_([{<“‘«"
_AFTER_WORDS = "\"'`*_)]}>”’».,;:!?。、，！？"


class DocumentList(list[dict[str, Any]]):
    """Documents with the columns that lm-eval expects; the values are unchanged."""

    def __init__(self, documents: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
        super().__init__(documents)
        self.features = dict.fromkeys(columns)


def harness_task(task: Task, tokenizer: RequestTokenizer, *, chat: bool = False) -> Any:
    """Returns an lm-eval task whose documents are a task's examples.

    Args:
        task: A task with examples.
        tokenizer: Tokenizer of the model, which measures the longest answer.
        chat: Whether prompts are written in a chat template. Answers and choices are then a turn
            of their own and stripped; only solved examples keep the space before them.
    """
    examples, space = task.examples, ""
    if chat:
        first = (examples[0].get("choices") or [examples[0]["answer"]])[0]
        space = first[: len(first) - len(first.lstrip())]
        examples = tuple(_stripped(example) for example in examples)
    documents = DocumentList(examples, _FIELDS[task.kind])
    config: dict[str, Any] = {
        "task": task.name,
        "custom_dataset": lambda **_: {"test": documents},
        "test_split": "test",
        "fewshot_split": "test",
        "output_type": task.kind,
        "doc_to_text": "prompt",
        "doc_to_target": _FIELDS[task.kind][-1],
        "target_delimiter": space,
        "metric_list": [_listed(name) for name in _METRICS[task.kind]],
        "metadata": {"capability": task.capability or task.name},
    }
    if task.kind == "multiple_choice":
        config["doc_to_choice"] = "choices"
    if task.kind == "generate_until":
        longest = task.max_new_tokens or SLACK + max(
            len(tokenizer.encode(example["answer"], special=False)) for example in task.examples
        )
        config["generation_kwargs"] = {
            "until": list(task.until), "max_gen_toks": longest, "do_sample": False,
        }  # fmt: skip
        config["process_results"] = matches
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    return ConfigurableTask(config=config)


def matches(document: dict[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Compares an output with the answer, by every metric of `ANSWER_METRICS`.

    An empty answer is compared as a whole by all of them.
    """
    output, answer = results[0].strip(), document["answer"].strip()
    equal = output == answer
    count = len(answer.split())
    first = [_bare(word) for word in output.split()[:count]]
    values = (
        equal,
        equal,
        _contains(output, answer) if answer else equal,
        first == [_bare(word) for word in answer.split()] if answer else equal,
    )
    return dict(zip(ANSWER_METRICS, map(float, values), strict=True))


def _contains(output: str, answer: str) -> bool:
    """Whether an answer stands in an output, in any case, and not within a word or a number."""
    begin = r"(?<!\w)" if _spaced(answer[0]) else ""
    if answer[0].isdigit():
        begin = r"(?<![\w.,-])"
    end = r"(?!\w)(?![.,]\d)" if _spaced(answer[-1]) else ""
    return re.search(f"{begin}{re.escape(answer)}{end}", output, re.IGNORECASE) is not None


def _spaced(letter: str) -> bool:
    """Whether a letter is of a script that writes spaces between words."""
    return letter.isalnum() and ord(letter) < 0x2E80


def _bare(word: str) -> str:
    """Returns a word in any case as one, without the marks of a sentence; signs of numbers stay."""
    return (word.lstrip(_BEFORE_WORDS).rstrip(_AFTER_WORDS) or word).casefold()


def _stripped(example: dict[str, Any]) -> dict[str, Any]:
    """Returns an example with its answer or choices stripped."""
    if example.get("choices") is not None:
        return {**example, "choices": [choice.strip() for choice in example["choices"]]}
    return {**example, "answer": example["answer"].strip()}


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
    takes_document = _takes_document(function)

    def scored(document: Any, results: Sequence[Any]) -> dict[str, Any]:
        choices = task.doc_to_choice(document) if kind == "multiple_choice" else None
        answer = task.doc_to_target(document)
        if choices is None:
            output = results[0]
        else:
            output = choices[max(range(len(choices)), key=lambda index: results[index][0])]
            answer = choices[answer] if isinstance(answer, int) else answer
        try:
            return {name: function(output, document if takes_document else answer)}
        except Exception as error:  # a caller's function may raise anything
            raise TaskUnusable(
                f"`metric` '{name}' of task '{task.task_name}' failed on output {output!r:.60}: "
                f"{type(error).__name__}: {error}"
            ) from error

    config = task._config
    config.process_results = scored
    config.metric_list = [_listed(name)]
    config.filter_list = None
    config.metadata = {**(config.metadata or {}), "rescored": True}
    task.process_results = scored
    task.aggregation = lambda: {name: mean}
    task.higher_is_better = lambda: {name: True}
    task._filters = []


def _takes_document(function: MetricFunction) -> bool:
    """Whether the second parameter of a function is called `document`."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some functions that are written in C have no signature
        return False
    return parameters[1:2] == ["document"]


def _listed(name: str) -> dict[str, Any]:
    return {"metric": name, "aggregation": "mean", "higher_is_better": True}
