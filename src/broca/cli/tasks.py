"""`broca tasks`: which tasks there are, and how one of them is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broca.cli.commands import command
from broca.cli.output import print_json
from broca.cli.wording import say
from broca.options import SourceOptions, TaskOptions

if TYPE_CHECKING:
    from broca.tasks import Benchmark


@command
def tasks(
    name: str | None = None,
    /,
    *,
    model: str = "reference",
    json: bool = False,
    source_options: SourceOptions,
    task_options: TaskOptions,
) -> None:
    """List the package's tasks, the paper's and a folder's, or show how one of any is asked.

    Args:
        name: A task or group to show; without one, tasks are listed.
        model: Whose tokenizer and context length to show a task with.
    """
    from broca.models import load_tokenizer
    from broca.tasks import Catalog, RequestTokenizer
    from broca.tasks.paper import PAPER_GROUPS, PAPER_TASKS

    folder = source_options.include_path
    catalog = Catalog(folder, allow_code=source_options.allow_code)
    if name is None:
        if json:
            print_json([*catalog.shipped, *catalog.instruct, *catalog.included])
            return
        say(*catalog.shipped)
        say(*(f"{task} (for chat models)" for task in catalog.instruct))
        say(*(f"{task} (from {folder})" for task in catalog.included))
        for task in PAPER_TASKS.values():
            code = ", --allow-code" if task.executes_code else ""
            say(f"{task.name} (lm-eval's, {task.skill}: {task.metric}{code})")
        for group, members in PAPER_GROUPS.items():
            say(f"{group} (for --others: {', '.join(members)})")
        return
    tokenizer, max_length = load_tokenizer(model)
    benchmark = catalog.load(
        name,
        RequestTokenizer(tokenizer, max_length=max_length),
        metric=task_options.metric,
        options=task_options,
    )
    description = _description(benchmark)
    if json:
        print_json(description)
        return
    for key, value in description.items():
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        say(f"{key}: {text}")


def _description(benchmark: Benchmark) -> dict[str, Any]:
    """What is worth knowing about a task before it is run."""
    first = benchmark.items[0]
    requests = [request for item in benchmark.items for request in item.requests]
    return {
        "name": benchmark.name,
        "tasks": list(benchmark.task_names),
        "kind": benchmark.kind,
        "items": len(benchmark.items),
        "metric": benchmark.metric,
        "metrics": list(benchmark.metric_names),
        "chance": round(benchmark.chance, 4),
        "requests": len(requests),
        "prompt tokens": max(len(request.context) for request in requests),
        "cut items": benchmark.cut_items,
        "notes": list(benchmark.notes),
        "first prompt": first.prompt,
        "first target": first.target,
    }
