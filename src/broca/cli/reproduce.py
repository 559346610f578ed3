"""`broca reproduce`: the paper's tables and figures, on any model."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from broca.cli.model_options import AllowPickle, Device, DType
from broca.cli.progress import ProgressLine
from broca.cli.run_options import Plain, Seed
from broca.cli.task_options import AllowCode, IncludePath
from broca.studies.paper import ALL, NAMES


def reproduce(
    name: Annotated[
        str, typer.Argument(help=f"One of {', '.join(NAMES)}, several as A,B, or {ALL}.")
    ],
    model: Annotated[list[str], typer.Argument(help="Models; their rows stand in one table.")],
    tasks: Annotated[
        str,
        typer.Option(
            help="Tasks to measure, T1,T2, or auto: the shipped ones for a shipped model, else "
            "those of --include-path, else the paper's."
        ),
    ] = "auto",
    include_path: IncludePath = None,
    method: Annotated[
        str, typer.Option(help="Search behind the lists; the paper's by default.")
    ] = "cs-stratified",
    rows: Annotated[
        int | None, typer.Option(help="Rows of each search; default: what the method needs.")
    ] = None,
    items: Annotated[int, typer.Option(help="Items of each search.")] = 100,
    limit: Annotated[int | None, typer.Option(help="Most report items of each task.")] = None,
    k: Annotated[int, typer.Option(help="Heads of each list.")] = 5,
    keep_universal: Annotated[
        bool, typer.Option("--keep-universal", help="Leave universal heads in the lists.")
    ] = False,
    allow_code: AllowCode = False,
    seed: Seed = 0,
    dtype: DType = "auto",
    device: Device = None,
    out: Annotated[
        str, typer.Option(help="Folder for JSON, CSV, the page, and the measured rows.")
    ] = "broca-paper",
    allow_pickle: AllowPickle = False,
    executor: Annotated[str, typer.Option(help="Where rows are measured: local or ray.")] = "local",
    journal: Annotated[
        str | None, typer.Option(help="A journal to share; default: the folder's own.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout, not CSV.")] = False,
    plain: Plain = False,
) -> None:
    """Repeat a table or figure of the paper; published figures stand beside where they exist."""
    from broca.results.files import check_out_folder
    from broca.runs.folder import JOURNAL
    from broca.studies.paper import as_csv, as_json, write
    from broca.studies.paper import reproduce as run
    from broca.studies.paper.running import stem_of

    folder = check_out_folder(out)
    progress = ProgressLine(plain=plain)
    try:
        found = run(
            name,
            model,
            tasks=tasks,
            include_path=include_path,
            method=method,
            rows=rows,
            items=items,
            limit=limit,
            k=k,
            keep_universal=keep_universal,
            allow_code=allow_code,
            seed=seed,
            journal=folder / JOURNAL if journal is None else journal,
            executor=executor,
            dtype=dtype,
            device=device,
            allow_pickle=allow_pickle,
            on_progress=progress,
        )
    finally:
        progress.close()
    paths = write(found, folder, stem_of(model))
    if len(found) == 1:
        sys.stdout.write(as_json(found[0]) if json else as_csv(found[0]))
    for note in dict.fromkeys(note for one in found for note in one.notes):
        typer.echo(f"note: {note}", err=True)
    for path in paths:
        typer.echo(f"written: {path}", err=True)
