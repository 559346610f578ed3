"""`rerun`: repeats a finished run, from its journal or from scratch, and compares."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from broca.components import Component, ComponentSet
from broca.journal import Journal
from broca.journal.reading import find_run
from broca.options import ExecutorOptions, JournalOptions, takes_options, without
from broca.results.localization import Localization, ranked
from broca.results.repetition import Repetition
from broca.runs.folder import with_recorded
from broca.runs.journaled_runs import localized_in, ranking_from_journal
from broca.runs.repeating import compare_rankings, compare_results

if TYPE_CHECKING:
    from broca.runs.progress import Report


@takes_options
def rerun(
    folder: str | Path,
    *,
    from_scratch: bool = False,
    on_progress: Report | None = None,
    executor_options: ExecutorOptions,
    journal_options: Annotated[JournalOptions, without("keep_outputs")],
) -> Repetition:
    """Repeats the search of a finished run and compares the result with the run's.

    Args:
        folder: The folder of a run of `broca localize`.
        from_scratch: Whether to load the model and measure every row again; by default the search
            is repeated with the rows of the journal, without a model.
        on_progress: Receives the current stage and the progress of the run.
        executor: Where rows are measured again: `local` or `ray`; by default where the run was.
        journal: File that keeps the rows that are measured again, not the run's; by default a file
            in the folder, which is removed when the repetition has ended.

    Returns:
        The grade: `identical`, `equal within the tolerance`, `same selection` or `different`.

    Raises:
        BrocaError: The folder or its journal lacks a file or a row, or `journal` is the run's.
    """
    run_folder = localized_in(folder)
    before = Localization.read(folder)
    if from_scratch:
        from broca.verbs.localize import localize  # imports torch, which the journal does not need

        arguments = run_folder.arguments
        day = before.task_options.get("chat_template_date")
        task_options = replace(arguments["task_options"], chat_template_date=day)
        arguments |= {"task_options": task_options}
        arguments |= asdict(with_recorded(executor_options, arguments))
        with run_folder.scratch(journal_options) as scratch:
            after = localize(**arguments, journal_options=scratch, on_progress=on_progress)
        return compare_results(before, after)
    with Journal(run_folder.journal, read_only=True) as journal:
        run = find_run(journal, run_folder.record["digests"].get("run"))
        ranking = ranking_from_journal(journal, run)
    components = ComponentSet(tuple(Component.parse(name) for name in run.components))
    return compare_rankings(
        before,
        ranked(components, ranking.effects, ranking.order, **ranking.details),
        tuple(components.names[column] for column in ranking.selected),
    )
