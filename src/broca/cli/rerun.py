"""`broca rerun`: does a finished run come out again?"""

from __future__ import annotations

from typing import Annotated

import typer

from broca.cli.progress import ProgressLine
from broca.cli.run_options import Plain
from broca.errors import BadInput, NotReproduced


def rerun(
    folder: Annotated[str, typer.Argument(help="The out folder of a finished run.")],
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Load the model and measure everything anew.")
    ] = False,
    plain: Plain = False,
) -> None:
    """Repeat the run of FOLDER from its journal alone, or from scratch, and compare."""
    from broca.results.localization import Localization
    from broca.runs.folder import RunFolder
    from broca.verbs.rerun import compare_results, rerun_from_journal

    run = RunFolder.read(folder)
    if run.record["asked"].get("verb") != "localize":
        raise BadInput(f"'{folder}' holds no run of `broca localize`: only those can be repeated")
    if from_scratch:
        from broca.cli.localize import arguments_of
        from broca.verbs import localize as api

        before = Localization.read(folder)
        progress = ProgressLine(plain=plain)
        try:
            after = api.localize(**arguments_of(run.record), on_progress=progress)
        finally:
            progress.close()
        found = compare_results(before, after)
    else:
        found = rerun_from_journal(run)
    typer.echo(found.grade)
    for line in found.details:
        typer.echo(line)
    if not found.passed:
        raise NotReproduced(
            f"'{folder}' did not come out again ({found.grade}): compare `versions` and `machine` "
            "in its reproduce.json with this installation"
        )
