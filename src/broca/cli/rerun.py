"""`broca rerun`: repeat a finished run and compare the results."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

from broca.cli.commands import PrintOptions, command
from broca.cli.progress import ProgressDisplay
from broca.cli.wording import say
from broca.errors import NotReproduced
from broca.options import ExecutorOptions, JournalOptions, without


@command
def rerun(
    folder: str,
    /,
    *,
    from_scratch: bool = False,
    executor_options: ExecutorOptions,
    journal_options: Annotated[JournalOptions, without("keep_outputs")],
    print_options: Annotated[PrintOptions, without("json")],
) -> None:
    """Repeat the run of FOLDER from its journal alone, or from scratch, and compare.

    Args:
        folder: The out folder of a finished run.
        from_scratch: Load the model and measure every row again.
        executor: Where rows are measured again: local or ray; default: where the run was.
        journal: A journal for them, not the run's; default: a file in the folder until the end.
    """
    import broca

    with closing(ProgressDisplay(print_options)) as progress:
        comparison = broca.rerun(
            folder,
            from_scratch=from_scratch,
            on_progress=progress,
            executor_options=executor_options,
            journal_options=journal_options,
        )
    say(comparison.grade, *comparison.details)
    if not comparison.passed:
        raise NotReproduced(
            f"'{folder}' was not reproduced ({comparison.grade}): compare `versions` and "
            "`machine` in its reproduce.json with this installation"
        )
