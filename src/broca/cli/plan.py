"""`broca plan`: what each method would take here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from broca.cli.model_options import AllowPickle, Components, Device, DType, Model
from broca.cli.run_options import Items, Json, K, Seed
from broca.cli.task_options import AllowCode, IncludePath, Limit, Metric, NumFewshot, Others, Task


def plan(
    model: Model,
    task: Task,
    others: Others = "auto",
    include_path: IncludePath = None,
    rows: Annotated[
        int | None, typer.Option(help="Most rows of a search; default: what each needs.")
    ] = None,
    k: K = 5,
    items: Items = 100,
    seed: Seed = 0,
    components: Components = "heads",
    sample: Annotated[int, typer.Option(help="Rows to time, in each response.")] = 32,
    metric: Metric = None,
    num_fewshot: NumFewshot = None,
    limit: Limit = None,
    allow_code: AllowCode = False,
    dtype: DType = "auto",
    device: Device = None,
    allow_pickle: AllowPickle = False,
    json: Json = False,
) -> None:
    """Print the rows, tokens and time of every method on MODEL, from a few timed rows."""
    from broca.results.codec import encode
    from broca.tasks import TaskOptions
    from broca.verbs.plan import estimate

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
        sys.stdout.write(encode(found))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(
        title=f"search for {found.task} in {found.model.name}: {found.components} components"
    )
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
