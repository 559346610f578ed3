"""`broca plan`: what each method would take here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from broca.cli.model_options import AllowPickle
from broca.cli.task_options import AllowCode, Limit, Metric, NumFewshot


def plan(
    model: Annotated[str, typer.Argument(help="reference, planted, a model folder or a hub id.")],
    task: Annotated[str, typer.Option(help="The task to localize: shipped, own or lm-eval's.")],
    others: Annotated[
        str,
        typer.Option(help="Tasks the heads should leave alone: T1,T2 or auto or nothing."),
    ] = "auto",
    include_path: Annotated[
        str | None, typer.Option(help="A folder of lm-eval YAML tasks to add.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Most rows of a search; default: what each needs.")
    ] = None,
    k: Annotated[int, typer.Option(help="Most heads to select.")] = 5,
    items: Annotated[int, typer.Option(help="Most items to search on.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    components: Annotated[
        str,
        typer.Option(
            help="heads, kv-groups, attention, mlp, layers, experts, neurons, joined by +."
        ),
    ] = "heads",
    sample: Annotated[int, typer.Option(help="Rows to time, in each response.")] = 32,
    metric: Metric = None,
    num_fewshot: NumFewshot = None,
    limit: Limit = None,
    allow_code: AllowCode = False,
    dtype: Annotated[
        str, typer.Option(help="float32, bfloat16, float16, or auto (float32 on a CPU).")
    ] = "auto",
    device: Annotated[str | None, typer.Option(help="Device, such as cpu or cuda:0.")] = None,
    allow_pickle: AllowPickle = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Print the rows, tokens and time of every method on MODEL, from a few timed rows."""
    from broca.estimating import estimate
    from broca.tasks import TaskOptions

    found = estimate(
        model,
        task=task,
        others=others,
        include_path=include_path,
        rows=rows,
        k=k,
        items=items,
        seed=seed,
        components=components,
        dtype=dtype,
        device=device,
        allow_code=allow_code,
        allow_pickle=allow_pickle,
        task_options=TaskOptions(metric=metric, num_fewshot=num_fewshot, limit=limit),
        sample=sample,
    )
    if json:
        sys.stdout.write(found.to_json())
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(title=f"search for {found.task} in {found.model}: {found.components} components")
    for column in ("method", "rows", "tokens", "time", "response"):
        table.add_column(
            column, justify="right" if column in ("rows", "tokens", "time") else "left"
        )
    for one in found.methods:
        if one.problem:
            table.add_row(one.method, "", "", "", one.problem)
        else:
            table.add_row(
                one.method, f"{one.rows:,}", f"{one.tokens:,}", _duration(one.seconds), one.response
            )
    console.print(table)
    console.print(
        f"from {found.timed_rows} timed rows; work that rows share makes it less; the proof "
        f"measures {found.proof_rows:,} rows and more; memory held so far: "
        f"{found.memory_bytes / 2**30:.1f} GiB",
        markup=False,
    )


def _duration(seconds: float) -> str:
    """Seconds, minutes or hours, to what a plan can know."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"
