"""`rerun`: repeats a finished run, from its journal or from scratch, and compares."""

from __future__ import annotations

from dataclasses import replace

from broca.components import Component, ComponentSet
from broca.journal import Journal
from broca.journal.reading import find_run
from broca.options import RerunOptions, verb
from broca.results.localization import Localization, ranked
from broca.results.runs import Repetition
from broca.runs.folder import with_recorded
from broca.runs.journaled_runs import localized_in, ranking_from_journal
from broca.runs.repeating import compare_rankings, compare_results


@verb(RerunOptions)
def rerun(options: RerunOptions) -> Repetition:
    """Repeats the search of a finished run and compares the result with the run's.

    Returns:
        The grade: `identical`, `equal within the tolerance`, `same selection` or `different`.

    Raises:
        BrocaError: The folder or its journal lacks a file or a row, or `journal` is the run's.
    """
    run_folder = localized_in(options.folder)
    before = Localization.read(options.folder)
    if options.from_scratch:
        from broca.verbs.localize import localize  # imports torch, which the journal does not need

        again = run_folder.options
        run_options = again.run_options
        day = before.task_options.get("chat_template_date")
        executor = with_recorded(options.executor_options, run_options.executor_options)
        with run_folder.scratch(options.journal_options) as scratch:
            run_options = replace(
                run_options,
                task_options=replace(run_options.task_options, chat_template_date=day),
                executor_options=executor,
                journal_options=scratch,
                on_progress=options.on_progress,
            )
            after = localize(settings=replace(again, run_options=run_options))
        return compare_results(before, after)
    with Journal(run_folder.journal, read_only=True) as journal:
        run = find_run(journal, run_folder.record.digests.get("run"))
        ranking = ranking_from_journal(journal, run)
    components = ComponentSet(tuple(Component.parse(name) for name in run.components))
    return compare_rankings(
        before,
        ranked(components, ranking.effects, ranking.order, **ranking.details),
        tuple(components.names[column] for column in ranking.selected),
    )
