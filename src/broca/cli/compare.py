"""`broca compare`: compares models or runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.commands import SharedFolderOutput, command_of
from broca.cli.keeping import LoadedModels, settings_of, shared_result
from broca.cli.output import console, folder_of, print_lines, print_page_table, show
from broca.cli.tracking import Report
from broca.options import CompareRunOptions, RunOptions

if TYPE_CHECKING:
    from broca.results.comparison import Comparison

_SHOWN = 10
"""Number of components that are printed for each model and task."""


@command_of("broca.verbs.compare:compare", renamed={"revisions": "revision"})
def compare(
    models: list[str],
    /,
    *,
    revision: list[str] | None = None,
    out: str | None = None,
    run_options: CompareRunOptions,
    output_options: SharedFolderOutput,
    **parameters: Any,
) -> None:
    """Compare models of one architecture, or runs, on the same masks and items.

    Args:
        models: Models, or out folders of runs or atlases; the first is the reference.
        tasks: T1,T2,...; default: those of the runs.
        heads: Components to ablate together in every model, L0H4+L1H8.
        revision: A revision of a single model; may be repeated.
        response: accuracy, margin or probability; default: probability if the models share right
            answers.
        rows: Rows with random masks for each model and task.
        limit: Maximum number of report items of a task.
        level: Level of tests, and false discovery rate.
        seed: Seed of all random draws; default: the first run's, or 0.
        out: Folder for comparison.json; default: broca-out.
    """
    from broca.results.comparison import Comparison

    folder = folder_of(out, None)
    settings = settings_of(
        "compare", models=models, revision=revision, run_options=run_options, **parameters
    )

    def measure(options: RunOptions, report: Report) -> tuple[Comparison, LoadedModels]:
        import broca

        result = broca.compare(
            *models,
            revisions=revision or (),
            run_options=options,
            on_progress=report,
            **parameters,
        )
        return result, [(compared.model.name, compared.revision) for compared in result.models]

    result, files = shared_result(
        Comparison, folder, settings, run_options, output_options, measure
    )
    show(result, files[-1], output_options.print_options, _print)


def _print(result: Comparison, page: Path) -> None:
    from broca.reports.comparison import carry_table, difference_table, score_table

    screen = console()
    for table in (difference_table(result, most=_SHOWN), score_table(result), carry_table(result)):
        print_page_table(screen, table)
    notes = (f"note: {note}" for note in result.notes)
    print_lines(screen, (*result.summary(), *notes), f"report: {page}")
