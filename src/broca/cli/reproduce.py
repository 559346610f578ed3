"""`broca reproduce`: the paper's tables and figures, on any model."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Annotated

from broca.cli.commands import PrintOptions, command
from broca.cli.progress import ProgressLine
from broca.cli.wording import tell
from broca.options import ModelOptions, SourceOptions, without


@command
def reproduce(
    name: str,
    model: list[str],
    /,
    *,
    tasks: str = "auto",
    method: str = "cs-stratified",
    rows: int | None = None,
    items: int = 100,
    limit: int | None = None,
    k: int = 5,
    keep_universal: bool = False,
    seed: int = 0,
    out: str = "broca-paper",
    source_options: SourceOptions,
    model_options: Annotated[ModelOptions, without("components", "device_map")],
    print_options: PrintOptions,
) -> None:
    """Repeat a table or figure of the paper; published figures stand beside where they exist.

    Args:
        name: One of {studies}, several as A,B, or all.
        model: Models; their rows stand in one table.
        tasks: Tasks to measure, T1,T2, or auto: the shipped ones for a shipped model, else those of
            `include_path`, else the paper's.
        method: Search behind the lists; the paper's by default.
        rows: Rows of each search; default: what the method needs.
        items: Items of each search.
        limit: Most report items of each task.
        k: Heads of each list.
        keep_universal: Leave universal heads in the lists.
        out: Folder for JSON, CSV, the page, and the measured rows.
        json: Print JSON on stdout, not CSV.
    """
    from broca.results.files import check_out_folder
    from broca.studies.paper import Settings, as_csv, as_json, write
    from broca.studies.paper import reproduce as run
    from broca.studies.paper.running import stem_of

    folder = check_out_folder(out)
    with closing(ProgressLine(plain=print_options.plain)) as progress:
        reproductions = run(
            name,
            model,
            settings=Settings(
                tasks=tasks,
                include_path=source_options.include_path,
                method=method,
                rows=rows,
                items=items,
                limit=limit,
                k=k,
                keep_universal=keep_universal,
                allow_code=source_options.allow_code,
                seed=seed,
                journal=folder / "journal.sqlite",
            ),
            dtype=model_options.dtype,
            device=model_options.device,
            allow_pickle=model_options.allow_pickle,
            report=lambda text: progress(text, None),
        )
    paths = write(reproductions, folder, stem_of(model))
    if len(reproductions) == 1:
        text = as_json if print_options.json else as_csv
        sys.stdout.write(text(reproductions[0]))
    notes = dict.fromkeys(note for table in reproductions for note in table.notes)
    tell(*(f"note: {note}" for note in notes), *(f"written: {path}" for path in paths))
