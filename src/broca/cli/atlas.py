"""`broca atlas`: every component's effect on every task, from one joint run."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broca.cli.keeping import absolute, keeping
from broca.cli.model_options import (
    AllowPickle,
    ComponentsButNeurons,
    Device,
    DeviceMap,
    DType,
    Model,
)
from broca.cli.option_groups import takes_groups
from broca.cli.progress import ProgressLine
from broca.cli.run_options import Ablation, Fresh, Journal, Plain, Resume, Scale, Seed, TokenBudget
from broca.cli.task_options import AllowCode, AskingOptions, IncludePath, ReferenceOption, Tasks

if TYPE_CHECKING:
    from broca.results.atlas import Atlas


@takes_groups
def atlas(
    model: Model,
    tasks: Tasks = "auto",
    include_path: IncludePath = None,
    rows: Annotated[
        int | None,
        typer.Option(help="Most (mask, item) rows over all tasks; default: 800 for each."),
    ] = None,
    k: Annotated[int, typer.Option(help="Most heads to select for a task.")] = 5,
    items: Annotated[int, typer.Option(help="Most items of each task.")] = 100,
    seed: Seed = 0,
    components: ComponentsButNeurons = "heads",
    response: Annotated[
        str | None,
        typer.Option(
            help="What is measured: accuracy, margin or probability; default: probability where "
            "every task has items with a margin."
        ),
    ] = None,
    ablation: Ablation = "zero",
    scale: Scale = 0.0,
    *,
    asking: AskingOptions,
    reference: ReferenceOption = "own",
    token_budget: TokenBudget = None,
    out: Annotated[str, typer.Option(help="Folder for atlas.json and atlas.html.")] = "broca-atlas",
    dtype: DType = "auto",
    device: Device = None,
    device_map: DeviceMap = None,
    allow_code: AllowCode = False,
    allow_pickle: AllowPickle = False,
    journal: Journal = None,
    resume: Resume = False,
    fresh: Fresh = False,
    json: Annotated[bool, typer.Option("--json", help="Print atlas.json on stdout.")] = False,
    plain: Plain = False,
) -> None:
    """Rate every head of MODEL on several tasks at once: universal heads, own heads, clusters."""
    from broca.engine import EngineOptions
    from broca.results.codec import encode
    from broca.results.files import check_out_folder
    from broca.tasks import TaskOptions
    from broca.verbs import atlas as charting

    task_options = {**asdict(asking), "reference": reference}
    asked = {
        "model": absolute(model) if Path(model).is_dir() else model,
        "tasks": tasks,
        "include_path": None if include_path is None else absolute(include_path),
        "rows": rows,
        "k": k,
        "items": items,
        "seed": seed,
        "components": components,
        "response": response,
        "ablation": ablation,
        "scale": scale,
        "dtype": dtype,
        "allow_code": allow_code,
    }
    how = {
        "device": device,
        "device_map": device_map,
        "token_budget": token_budget,
        "allow_pickle": allow_pickle,
    }
    progress = ProgressLine(plain=plain)
    try:
        with keeping(
            check_out_folder(out),
            verb="atlas",
            asked={**asked, "task_options": task_options},
            how=how,
            journal=journal,
            keep_outputs=0.0,
            fresh=fresh,
            resume=resume,
        ) as journaling:
            found = charting.atlas(
                **asked,  # type: ignore[arg-type]
                task_options=TaskOptions(**task_options),
                device=device,
                device_map=device_map,
                allow_pickle=allow_pickle,
                engine_options=EngineOptions(token_budget=token_budget),
                journal=journaling,
                on_progress=progress,
            )
            paths = found.save(out)
    finally:
        progress.close()
    if json:
        sys.stdout.write(encode(found))
    else:
        _print(found, paths[1])


def _print(found: Atlas, page: Path) -> None:
    """Prints what each task needs, what all need, and where the page is."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(title=f"what each task needs beyond the others (effect on {found.response})")
    for column in ("task", "capability", "intact", "explained", "heads and their contrast"):
        table.add_column(column, justify="right" if column in ("intact", "explained") else "left")
    for task, selection in zip(found.tasks, found.selections, strict=True):
        listed = ", ".join(f"{one.name} {one.contrast:+.2f}" for one in selection.components)
        table.add_row(
            Text(task.name),
            Text(task.capability),
            f"{task.intact:.3f}",
            f"{task.explained:.2f}",
            Text(listed or f"none: {selection.reason}"),
        )
    console.print(table)
    if found.universal:
        table = Table(title="universal: hurts most tasks, about alike")
        for column in ("head", "mean effect", "tasks hurt"):
            table.add_column(column, justify="left" if column == "head" else "right")
        usable = sum(not one.at_chance for one in found.tasks)
        for each in found.universal:
            table.add_row(each.name, f"{each.effect:+.3f}", f"{len(each.hurts)} of {usable}")
        console.print(table)
    else:
        console.print("universal: no head hurts most tasks about alike")
    if found.groups is None:
        console.print(f"key/value groups: not tested: {found.groups_note}", markup=False)
    else:
        console.print(
            f"key/value groups: {found.groups.pairs} pairs of selected heads share one, "
            f"{found.groups.expected:.1f} expected, p = {found.groups.p:.2g}",
            markup=False,
        )
    for note in found.notes:
        console.print(f"note: {note}", markup=False)
    console.print(
        "This screens head by head; `broca localize` settles a task's set jointly.", markup=False
    )
    console.print(
        f"{found.cost.rows:,} rows in {found.cost.wall_s:.1f} s; atlas: {page}",
        markup=False,
        soft_wrap=True,
    )
