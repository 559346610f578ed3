"""`broca compare`: compares models or runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.commands import SharedFolderOutput, command_of
from broca.cli.keeping import LoadedModels, settings_of, shared_result
from broca.cli.output import console, folder_of, points, print_lines, print_table, show
from broca.cli.tracking import Report
from broca.options import CompareRunOptions, RunOptions

if TYPE_CHECKING:
    from broca.results.comparison import Comparison

_SHOWN = 10


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
    screen = console()
    for change in result.differences:
        order = sorted(range(len(change.p)), key=lambda column: change.p[column])[:_SHOWN]
        print_table(
            screen,
            f"{change.task}: effects in {change.model} minus those in {result.models[0].label}",
            "component|difference|95 % interval|q",
            (
                (
                    result.components[column],
                    f"{change.differences[column]:+.3f}",
                    f"{change.low[column]:+.3f} to {change.high[column]:+.3f}",
                    f"{change.q[column]:.2g}",
                    "bold" if result.components[column] in change.changed else None,
                )
                for column in order
            ),
        )
    print_table(
        screen,
        "scores on report items",
        "model|task|ablated|score|points lost",
        (
            (
                line.model, line.task, line.selection or "nothing", f"{line.score:.3f}",
                points(line.drop),
            )
            for line in result.scores
        ),
        left=3,
    )  # fmt: skip
    notes = (f"note: {note}" for note in result.notes)
    print_lines(screen, (*result.summary(), *notes), f"report: {page}")
