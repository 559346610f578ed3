"""`describe_task`: how a task is prompted and scored, before it is run."""

from __future__ import annotations

from dataclasses import dataclass

from broca.models import GatedModel, load_tokenizer
from broca.options import SourceOptions, TaskOptions, takes_options
from broca.tasks import Catalog, RequestTokenizer, Task


@dataclass(frozen=True)
class TaskDescription:
    """The prompts, metrics and items of a task.

    Attributes:
        name: Name of the task.
        tasks: The tasks of lm-eval that it consists of.
        kind: Kind of its requests.
        items: Number of items.
        metric: The metric that is used.
        metrics: All its metrics.
        chance: Score of guessing.
        requests: Number of requests of all items.
        prompt_tokens: Number of tokens of the longest prompt.
        cut_items: Number of prompts that were truncated from the left to fit the model's context.
        notes: Notes for the reader.
        first_prompt: The prompt of the first item.
        first_target: Right answer of the first item.
    """

    name: str
    tasks: tuple[str, ...]
    kind: str
    items: int
    metric: str
    metrics: tuple[str, ...]
    chance: float
    requests: int
    prompt_tokens: int
    cut_items: int
    notes: tuple[str, ...]
    first_prompt: str
    first_target: str


@takes_options
def describe_task(
    task: str | Task,
    *,
    model: str | GatedModel = "reference",
    source_options: SourceOptions,
    task_options: TaskOptions,
) -> TaskDescription:
    """Builds a task and describes its prompts and metrics; no weights are loaded.

    Args:
        task: A task or group: shipped, in `include_path`, any of lm-eval, a JSON-lines file, or a
            `broca.Task`.
        model: Model whose tokenizer and context length are used.

    Raises:
        BrocaError: The task is unknown or cannot be used.
    """
    catalog = Catalog(source_options.include_path, allow_code=source_options.allow_code)
    catalog.require(task, task_options)
    if isinstance(model, GatedModel):
        tokenizer, max_length = model.tokenizer, model.max_length
    else:
        tokenizer, max_length = load_tokenizer(model)
    benchmark = catalog.load(
        task,
        RequestTokenizer(tokenizer, max_length=max_length),
        metric=task_options.metric,
        options=task_options,
    )
    requests = [request for item in benchmark.items for request in item.requests]
    first = benchmark.items[0]
    return TaskDescription(
        name=benchmark.name,
        tasks=tuple(benchmark.task_names),
        kind=benchmark.kind,
        items=len(benchmark.items),
        metric=benchmark.metric,
        metrics=tuple(benchmark.metric_names),
        chance=round(benchmark.chance, 4),
        requests=len(requests),
        prompt_tokens=max(len(request.context) for request in requests),
        cut_items=benchmark.cut_items,
        notes=tuple(benchmark.notes),
        first_prompt=first.prompt,
        first_target=first.target,
    )
