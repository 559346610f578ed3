"""`broca reproduce`: the paper's tables and figures, on any model."""

from __future__ import annotations

from typing import Any

from broca.cli.commands import PrintOptions, command_of
from broca.cli.keeping import measuring
from broca.cli.output import print_text
from broca.cli.wording import tell
from broca.options import PaperRunOptions


@command_of("broca.studies.paper.running:reproduce", renamed={"names": "name", "models": "model"})
def reproduce(
    name: str,
    model: list[str],
    /,
    *,
    method: str = "cs-stratified",
    out: str = "broca-paper",
    run_options: PaperRunOptions,
    print_options: PrintOptions,
    **parameters: Any,
) -> None:
    """Repeat a table or figure of the paper on other models, beside the published figures if they
    exist.

    Args:
        name: One of {studies}, several as A,B, or all.
        model: Models, whose rows share one table.
        tasks: Tasks to measure, T1,T2, or auto: the shipped ones for a shipped model, else those of
            `include_path`, else the paper's.
        method: Search method of the lists; default: the paper's.
        rows: Maximum number of rows of each search; default: as many as the method needs.
        items: Maximum number of items of each search.
        k: Number of heads of each list.
        keep_universal: Leave universal heads in the lists.
        out: Folder for JSON, CSV, the page, and the measured rows.
        json: Print JSON on stdout, not CSV; that of several studies is a list.
    """
    with measuring(out, run_options, print_options) as (folder, options, progress):
        import broca
        from broca.studies.paper import as_csv, as_json, write  # imports torch
        from broca.studies.paper.running import stem_of

        reproductions = broca.reproduce(
            name, model, method=method, on_progress=progress, run_options=options, **parameters
        )
    paths = write(reproductions, folder, stem_of(model))
    if print_options.json:
        texts = ",\n".join(as_json(reproduction).rstrip() for reproduction in reproductions)
        print_text(f"[{texts}]\n" if len(reproductions) > 1 else f"{texts}\n")
    elif len(reproductions) == 1:
        print_text(as_csv(reproductions[0]))
    notes = dict.fromkeys(note for table in reproductions for note in table.notes)
    tell(*(f"note: {note}" for note in notes), *(f"written: {path}" for path in paths))
