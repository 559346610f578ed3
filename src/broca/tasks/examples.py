"""Tasks from the user's examples: pairs of prompt and answer, or prompts with choices."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal

from lm_eval.api.task import ConfigurableTask

from broca.errors import BadInput, TaskUnusable, first_line
from broca.known_paths import place_of
from broca.tasks.example_files import read_rows
from broca.tasks.metrics import MetricFunction, listed_mean
from broca.tasks.tokenizer import RequestTokenizer

ANSWER_METRICS = ("exact_match", "exact", "contains", "first-word")
"""Metrics of generated answers: the whole output, the answer within it, or its first word."""

TaskKind = Literal["generate_until", "multiple_choice", "loglikelihood"]
"""lm-eval's output types of examples."""

_KINDS: dict[str, TaskKind] = {"answer": "generate_until", "choices": "multiple_choice"}

_METRICS: dict[TaskKind, tuple[str, ...]] = {
    "generate_until": ANSWER_METRICS,
    "loglikelihood": ("acc",),
    "multiple_choice": ("acc", "acc_norm"),
}

LONGEST = 1_000_000
"""Maximum number of characters of a text of an example."""

_SLACK = 8
"""Number of tokens by which a generation may exceed the longest answer."""

_BEFORE_WORDS = "\"'`*_([{<“‘«"
_AFTER_WORDS = "\"'`*_)]}>”’».,;:!?。、，！？"


@dataclass(frozen=True, eq=False)
class Task:
    """A task that the user defines: examples, or the name of a task of the catalog.

    The prompt and the answer are joined without a delimiter. Answers are decoded greedily up to the
    end of the sequence or `until`, and compared with both sides stripped (`exact_match`, also named
    `exact`). The metric `contains` asks for the answer anywhere in the output. `first-word` asks
    whether the output begins with the words of the answer, in any case and without quotes,
    brackets and punctuation around words. Choices are compared by their likelihood (`acc`;
    `acc_norm` divides by their length). In a chat template, answers and choices are stripped.

    Attributes:
        name: Name in results; without examples the name of a task of the catalog or the path of a
            file of examples.
        metric: Name of the metric, or a function; see `MetricFunction`.
        until: Strings that end a generation, besides the end of the sequence.
        max_new_tokens: Maximum number of tokens of a generation; by default those of the longest
            answer plus 8.
        capability: Capability that it measures; by default its name.
        examples: Its examples: `prompt` and `answer`, or `prompt`, `choices` and `label` (an
            index), and any other fields.
        kind: lm-eval's output type; `loglikelihood` tests whether greedy decoding gives the answer.

    Raises:
        BadInput: The metric has the wrong type, or a setting is given that a named task defines
            itself.
    """

    name: str
    metric: str | MetricFunction | None = None
    until: Sequence[str] | str = ()
    max_new_tokens: int | None = None
    capability: str = ""
    examples: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    kind: TaskKind = "generate_until"

    def __post_init__(self) -> None:
        until = tuple(self.until) if isinstance(self.until, list | tuple) else (self.until,)
        object.__setattr__(self, "until", until)
        if not isinstance(self.name, str) or not self.name.strip():
            raise BadInput(
                f"`name` must be a task's name, not {self.name!r}; `Task.from_examples` takes "
                "examples"
            )
        if not (callable(self.metric) or isinstance(self.metric, str | None)):
            raise BadInput(
                f"`metric` must be a name or a function, not {type(self.metric).__name__}"
            )
        if not all(isinstance(text, str) and text for text in until):
            raise BadInput("`until` must be a string or several, none of them empty")
        longest: Any = 1 if self.max_new_tokens is None else self.max_new_tokens
        if not isinstance(longest, Integral) or longest < 1:
            raise BadInput(f"`max_new_tokens` must be a whole number from 1, not {longest!r}")
        if not self.examples and (until or self.max_new_tokens):
            raise BadInput("`until` and `max_new_tokens` are for examples: use `from_examples`")

    @classmethod
    def from_examples(
        cls,
        examples: Iterable[Any] | str | os.PathLike[str],
        *,
        name: str | None = None,
        metric: str | MetricFunction | None = None,
        until: str | Sequence[str] = (),
        max_new_tokens: int | None = None,
        capability: str = "",
    ) -> Task:
        """Makes a task from examples.

        Args:
            examples: Pairs of prompt and answer, dictionaries, a `datasets.Dataset` or a DataFrame
                with such columns, or the path of a file: JSON lines with one such dictionary a
                line, a JSON array of them, or CSV with a line of names. A label is the index of
                the right choice or its text.
            name: Name in results; by default `examples` or the path. Tasks of a run need different
                names.
            metric: Name of the metric, or a function; see `MetricFunction`.
            until: Strings that end a generation.
            max_new_tokens: Longest generation.
            capability: Capability that it measures; by default its name.

        Raises:
            BadInput: The file cannot be read, or an example is not of a known form; the message
                names its line or its place in the list.
            TaskUnusable: There are no examples.
        """
        if callable(records := getattr(examples, "to_dict", None)) and hasattr(
            examples, "to_records"
        ):
            examples = records("records")  # a DataFrame of pandas, no column of one
        elif callable(records := getattr(examples, "to_dicts", None)):
            examples = records()  # a DataFrame of polars
        if isinstance(examples, str | os.PathLike):
            name = name or str(examples)
            placed = read_rows(place_of(examples))
        elif isinstance(examples, Mapping) or not isinstance(examples, Iterable):
            raise BadInput(
                "`examples` must be a list of pairs or dictionaries, one split of a data set or "
                f"the path of a JSON-lines file, not {type(examples).__name__}"
            )
        else:
            placed = ((f"example {number}", content) for number, content in enumerate(examples))
        name, checked, kind = name or "examples", [], ""
        for place, content in placed:
            example, asks = _example(content, place)
            kind = kind or asks
            if asks != kind:
                raise BadInput(f"{place} has `{asks}`, where those before it have `{kind}`")
            checked.append(example)
        if not checked:
            raise TaskUnusable(f"task '{name}' has no examples")
        return cls(name, metric, until, max_new_tokens, capability, tuple(checked), _KINDS[kind])


Tasks = str | Task | Sequence[str | Task]
"""Tasks by their names or as objects: a list, one task, or names that a string joins by commas."""


def _example(content: Any, place: str) -> tuple[dict[str, Any], str]:
    """Checks an example, and returns it with the field that determines its kind.

    Args:
        content: The example.
        place: Its name in messages.
    """
    content = _of_python(content)
    if isinstance(content, tuple | list) and len(content) == 2:
        content = dict(zip(("prompt", "answer"), content, strict=True))
    if not isinstance(content, Mapping):
        raise BadInput(f"{place} is neither a pair of prompt and answer nor a dictionary")
    example = {}
    for key, value in content.items():
        value = _of_python(value)
        if not (isinstance(value, float) and math.isnan(value)):  # a DataFrame's for nothing
            example[str(key)] = value
    try:
        json.dumps(example, sort_keys=True, ensure_ascii=False, default=str).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"{place} is not JSON: {first_line(error)}; correct it") from error
    asks = "answer" if example.get("choices") is None else "choices"
    for key in ("prompt", "answer") if asks == "answer" else ("prompt", "choices", "label"):
        if example.get(key) is None:
            has = ", ".join(str(name) for name, value in example.items() if value is not None)
            raise BadInput(
                f"{place} has no `{key}` (it has {has[:200]}): an example has "
                "`prompt` and `answer`, or `prompt`, `choices` and `label`"
            )
    example["prompt"] = _text(example["prompt"], "prompt", place)
    if asks == "answer":
        answer = example["answer"]
        # an empty answer is right if the model ends the sequence
        empty = isinstance(answer, str) and not answer.strip()
        example["answer"] = "" if empty else _text(answer, "answer", place)
        return example, asks
    choices = example["choices"]
    if not isinstance(choices, list | tuple) or len(choices) < 2:
        raise BadInput(f"{place}: `choices` must be a list of two or more texts")
    example["choices"] = [_text(choice, "choices", place) for choice in choices]
    example["label"] = _label(example["label"], example["choices"], place)
    return example, asks


def _of_python(value: Any) -> Any:
    """Returns a value of NumPy, as DataFrames hold, as one of Python; others as they are."""
    return value.tolist() if hasattr(value, "tolist") else value


def _text(value: Any, key: str, place: str) -> str:
    """Returns a text, or a number as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise BadInput(f"{place}: `{key}` must be text, not {type(value).__name__}")
    if len(value) > LONGEST:
        raise BadInput(
            f"{place}: `{key}` has {len(value):,} characters, at most {LONGEST:,} are read"
        )
    if not value.strip():
        raise BadInput(f"{place} has an empty `{key}`: correct or remove it")
    return str(value)


def _label(label: Any, choices: Sequence[str], place: str) -> int:
    """Returns the index of the right choice, from an index or a choice's text.

    Of copies the first counts, which a metric takes for the likeliest.
    """
    if not isinstance(label, bool) and label in range(len(choices)):
        return choices.index(choices[int(label)])
    stripped = [choice.strip() for choice in choices]
    if isinstance(label, str) and label.strip() in stripped:
        return choices.index(label) if label in choices else stripped.index(label.strip())
    raise BadInput(
        f"{place}: `label` must be the index of a choice, from 0 to {len(choices) - 1}, or its "
        f"text, not {label!r}"
    )


class DocumentList(list[dict[str, Any]]):
    """Documents with the columns that lm-eval expects; the values are unchanged."""

    def __init__(self, documents: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
        super().__init__(documents)
        self.features = dict.fromkeys(columns)


def harness_task(task: Task, tokenizer: RequestTokenizer, *, chat: bool) -> Any:
    """Returns an lm-eval task whose documents are a task's examples.

    Args:
        task: A task with examples.
        tokenizer: Tokenizer of the model, which measures the longest answer.
        chat: Whether prompts are written in a chat template. Answers and choices are then a turn
            of their own and stripped; only solved examples keep the space before them.
    """
    examples, space = task.examples, ""
    asks = ("choices", "label") if task.kind == "multiple_choice" else ("answer",)
    if chat:
        first = (examples[0].get("choices") or [examples[0]["answer"]])[0]
        space = first[: len(first) - len(first.lstrip())]
        examples = tuple(_stripped(example) for example in examples)
    documents = DocumentList(examples, ("prompt", *asks))
    config: dict[str, Any] = {
        "task": task.name, "custom_dataset": lambda **_: {"test": documents},
        "test_split": "test", "fewshot_split": "test", "output_type": task.kind,
        "doc_to_text": "prompt", "doc_to_target": asks[-1], "target_delimiter": space,
        "metric_list": [listed_mean(name) for name in _METRICS[task.kind]],
        "metadata": {"capability": task.capability or task.name},
    }  # fmt: skip
    if task.kind == "multiple_choice":
        config["doc_to_choice"] = "choices"
    if task.kind == "generate_until":
        longest = task.max_new_tokens or _SLACK + max(
            len(tokenizer.encode(example["answer"], special=False)) for example in task.examples
        )
        config["generation_kwargs"] = {
            "until": list(task.until), "max_gen_toks": longest, "do_sample": False,
        }  # fmt: skip
        config["process_results"] = matches
    return ConfigurableTask(config=config)


def _stripped(example: dict[str, Any]) -> dict[str, Any]:
    """Returns an example with its answer or choices stripped."""
    if example.get("choices") is not None:
        return {**example, "choices": [choice.strip() for choice in example["choices"]]}
    return {**example, "answer": example["answer"].strip()}


def matches(document: dict[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Compares an output with the answer, by every metric of `ANSWER_METRICS`.

    An empty answer is compared as a whole by all of them.
    """
    output, answer = results[0].strip(), document["answer"].strip()
    whole = within = begins = output == answer
    if answer:
        within = _contains(output, answer)
        words = [_bare(word) for word in answer.split()]
        begins = [_bare(word) for word in output.split()[: len(words)]] == words
    return dict(zip(ANSWER_METRICS, map(float, (whole, whole, within, begins)), strict=True))


def _contains(output: str, answer: str) -> bool:
    """Whether an answer stands in an output, in any case, and not within a word or a number."""
    begin = r"(?<!\w)" if _spaced(answer[0]) else ""
    if re.match(r"[.,+−-]?\d", answer):  # also the typographic minus
        begin = r"(?<![\w.,−-])"
    end = r"(?!\w)(?![.,]\d)" if _spaced(answer[-1]) else ""
    return re.search(f"{begin}{re.escape(answer)}{end}", output, re.IGNORECASE) is not None


def _spaced(letter: str) -> bool:
    """Whether a letter is of a script that writes spaces between words."""
    return letter.isalnum() and ord(letter) < 0x2E80


def _bare(word: str) -> str:
    """Returns a word in any case as one, without the marks of a sentence; signs of numbers stay."""
    return (word.lstrip(_BEFORE_WORDS).rstrip(_AFTER_WORDS) or word).casefold()
