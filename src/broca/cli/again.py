"""Commands that use measured rows again."""

from contextlib import closing

from broca.cli.output import print_json, show
from broca.cli.progress import ProgressDisplay, ProgressPrint
from broca.cli.wording import say
from broca.errors import NotReproduced
from broca.options import RefitOptions, RerunOptions


def journal(file: str, /, *, export: str | None = None, json: bool = False) -> None:
    """Show the contents of a journal FILE, or export its rows.

    Args:
        file: A journal, such as broca-out/journal.sqlite.
        export: Write all rows to a .csv file.
        json: Print JSON on stdout.
    """
    if export is not None:
        from broca.store import Journal, export_rows

        with Journal(file, read_only=True) as opened:
            rows = export_rows(opened, export)
        if json:
            print_json({"rows": rows, "file": export})
        else:
            say(f"{rows:,} rows written to {export}")
        return
    import broca

    show(broca.inspect_journal(file), None, json=json)


def rerun(options: RerunOptions, *, prints: ProgressPrint = ProgressPrint()) -> None:
    """Repeat the run of FOLDER from its journal alone, or from scratch, and compare."""
    import broca

    with closing(ProgressDisplay(prints)) as progress:
        comparison = broca.rerun(settings=options, on_progress=progress)
    say(comparison.grade, *comparison.details)
    if not comparison.passed:
        raise NotReproduced(
            f"'{options.folder}' was not reproduced ({comparison.grade}): compare `versions` and "
            "`machine` in its reproduce.json with this installation"
        )


def refit(options: RefitOptions, *, out: str | None = None, json: bool = False) -> None:
    """Compute a new ranking from the rows that RUN measured, without a model.

    Args:
        out: Folder for refit.json.
        json: Print JSON on stdout.
    """
    import broca

    result = broca.refit(settings=options)
    path = None if out is None else result.save(out)[0]
    show(result, path, json=json)
