"""`broca tasks`: what can be asked without any download, and how one task is asked."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broca.cli.option_groups import takes_groups
from broca.cli.run_options import Json
from broca.cli.task_options import AllowCode, AskingOptions, IncludePath, Metric

if TYPE_CHECKING:
    from broca.tasks import Benchmark


@takes_groups
def tasks(
    name: Annotated[
        str | None, typer.Argument(help="A task or group to show; without one, tasks are listed.")
    ] = None,
    include_path: IncludePath = None,
    model: Annotated[
        str, typer.Option(help="Whose tokenizer and context length to show a task with.")
    ] = "reference",
    metric: Metric = None,
    *,
    asking: AskingOptions,
    allow_code: AllowCode = False,
    json: Json = False,
) -> None:
    """List the package's tasks, the paper's and a folder's, or show how one of any is asked."""
    from broca.tasks import Catalog, RequestTokenizer, TaskOptions
    from broca.tasks.paper import PAPER_GROUPS, PAPER_TASKS

    catalog = Catalog(include_path, allow_code=allow_code)
    if name is None:
        listed = [*catalog.shipped, *catalog.instruct, *catalog.included]
        if json:
            sys.stdout.write(json_format.dumps(listed, indent=2) + "\n")
            return
        for shipped in catalog.shipped:
            typer.echo(shipped)
        for instruct in catalog.instruct:
            typer.echo(f"{instruct} (for chat models)")
        for included in catalog.included:
            typer.echo(f"{included} (from {include_path})")
        for paper in PAPER_TASKS.values():
            code = ", --allow-code" if paper.executes_code else ""
            typer.echo(f"{paper.name} (lm-eval's, {paper.skill}: {paper.metric}{code})")
        for group, members in PAPER_GROUPS.items():
            typer.echo(f"{group} (for --others: {', '.join(members)})")
        return
    from broca.models import load_tokenizer

    options = TaskOptions(metric=metric, **asdict(asking))
    tokenizer, max_length = load_tokenizer(model)
    benchmark = catalog.load(
        name,
        RequestTokenizer(tokenizer, max_length=max_length),
        metric=metric,
        options=options,
    )
    shown = _description(benchmark)
    if json:
        sys.stdout.write(json_format.dumps(shown, indent=2, ensure_ascii=False) + "\n")
        return
    for key, value in shown.items():
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        typer.echo(f"{key}: {text}")


def _description(benchmark: Benchmark) -> dict[str, Any]:
    """What is worth knowing about a task before it is run."""
    first = benchmark.items[0]
    return {
        "name": benchmark.name,
        "tasks": list(benchmark.task_names),
        "kind": benchmark.kind,
        "items": len(benchmark.items),
        "metric": benchmark.metric,
        "metrics": list(benchmark.metric_names),
        "chance": round(benchmark.chance, 4),
        "requests": sum(len(item.requests) for item in benchmark.items),
        "prompt tokens": max(len(r.context) for item in benchmark.items for r in item.requests),
        "cut items": benchmark.cut_items,
        "notes": list(benchmark.notes),
        "first prompt": first.prompt,
        "first target": first.target,
    }
