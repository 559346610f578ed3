"""`broca reproduce`: tables of the paper, on any model."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from broca.cli.model_options import AllowPickle
from broca.cli.progress import ProgressLine


def reproduce(
    name: Annotated[str, typer.Argument(help="table2, table3, table4, table6, table9 or gqa.")],
    model: Annotated[list[str], typer.Argument(help="Models: one table each.")],
    tasks: Annotated[str, typer.Option(help="Tasks to localize, T1,T2, or auto.")] = "auto",
    include_path: Annotated[
        str | None, typer.Option(help="A folder of lm-eval YAML tasks to add.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Rows of each search.")] = None,
    items: Annotated[int, typer.Option(help="Items of each search.")] = 100,
    limit: Annotated[int | None, typer.Option(help="Most report items of each task.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    out: Annotated[str, typer.Option(help="Folder for the JSON and CSV files.")] = "broca-out",
    allow_pickle: AllowPickle = False,
    plain: Annotated[bool, typer.Option("--plain", help="Progress as plain lines.")] = False,
) -> None:
    """Repeat a table of the paper on MODEL; published figures stand beside where they exist."""
    from broca.api import check_out_folder
    from broca.files import write_beside
    from broca.models import load
    from broca.reproduce import as_csv, as_json
    from broca.reproduce import reproduce as run

    folder = check_out_folder(out)
    for one in model:
        progress = ProgressLine(plain=plain)
        try:
            loaded = load(one, allow_pickle=allow_pickle)
            table = run(
                name,
                loaded,
                tasks=tasks,
                include_path=include_path,
                rows=rows,
                items=items,
                limit=limit,
                seed=seed,
                report=partial(progress, progress=None),
            )
        finally:
            progress.close()
        stem = f"{name}-{loaded.name.strip('./').replace('/', '-')}"
        write_beside(folder / f"{stem}.json", as_json(table))
        write_beside(folder / f"{stem}.csv", as_csv(table))
        typer.echo(as_csv(table), nl=False)
        typer.echo(f"written: {folder / stem}.json and .csv")
