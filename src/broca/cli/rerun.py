"""`broca rerun`: repeat a finished run and compare the results."""

from __future__ import annotations

from contextlib import closing

from broca.cli.commands import command
from broca.cli.keeping import arguments_of
from broca.cli.progress import ProgressLine
from broca.cli.wording import say
from broca.errors import BadInput, NotReproduced


@command
def rerun(folder: str, /, *, from_scratch: bool = False, plain: bool = False) -> None:
    """Repeat the run of FOLDER from its journal alone, or from scratch, and compare.

    Args:
        folder: The out folder of a finished run.
        from_scratch: Load the model and measure everything anew.
    """
    import broca
    from broca.results.localization import Localization
    from broca.runs.folder import RunFolder
    from broca.verbs.rerun import compare_results, rerun_from_journal

    run = RunFolder.read(folder)
    if run.record["asked"].get("verb") != "localize":
        raise BadInput(f"'{folder}' holds no run of `broca localize`: only those can be repeated")
    if from_scratch:
        before = Localization.read(folder)
        with closing(ProgressLine(plain=plain)) as progress:
            after = broca.localize(**arguments_of(run.record), on_progress=progress)
        comparison = compare_results(before, after)
    else:
        comparison = rerun_from_journal(run)
    say(comparison.grade, *comparison.details)
    if not comparison.passed:
        raise NotReproduced(
            f"'{folder}' did not come out again ({comparison.grade}): compare `versions` and "
            "`machine` in its reproduce.json with this installation"
        )
