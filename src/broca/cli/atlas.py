"""`broca atlas`: every component's effect on every task, from one joint run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from broca.cli.commands import OutputOptions, command_of
from broca.cli.keeping import kept_result, record_of
from broca.cli.output import console, print_lines, print_page_table, show
from broca.options import RunOptions

if TYPE_CHECKING:
    from broca.results.atlas import Atlas


@command_of("broca.verbs.atlas:atlas")
def atlas(
    *,
    out: str = "broca-atlas",
    run_options: RunOptions,
    output_options: OutputOptions,
    **parameters: Any,
) -> None:
    """Measure the effect of every head of MODEL on several tasks: universal and special heads,
    clusters.

    Args:
        rows: Maximum number of (mask, item) rows over all tasks; default: 800 for each.
        k: Maximum number of heads to select for a task.
        items: Maximum number of items of each task.
        response: accuracy, margin or probability; default: probability if every task has items with
            a margin.
        out: Folder for atlas.json and atlas.html.
    """
    record = record_of(**parameters, run_options=run_options)
    for name in ("method", "options", "max_minutes"):
        del record["options"][name]
    from broca.results.atlas import Atlas

    result = kept_result(Atlas, out, record, run_options, output_options, verb="atlas")
    show(result, Path(out).expanduser() / result.PAGE, output_options.print_options, _print)


def _print(result: Atlas, page: Path) -> None:
    """Prints what each task needs, what all tasks need, and the path of the page."""
    from broca.reports.atlas import selection_table, task_table, universal_table

    screen = console()
    print_page_table(screen, task_table(result), "task|capability|intact|variance explained")
    print_page_table(screen, selection_table(result))
    print_page_table(screen, universal_table(result), "component|mean effect|tasks hurt")
    lines = (
        [] if result.universal else ["universal: no head hurts most tasks to about the same degree"]
    )
    lines.append(
        f"key/value groups: not tested: {result.groups_note}"
        if result.groups is None
        else f"key/value groups: {result.groups.pairs} pairs of selected heads share one, "
        f"{result.groups.expected:.1f} expected, p = {result.groups.p:.2g}"
    )
    lines += [f"note: {note}" for note in result.notes]
    lines.append("This is a screen of single heads; `broca localize` tests a task's set jointly.")
    spent = f"{result.cost.rows:,} rows in {result.cost.wall_s:.1f} s"
    print_lines(screen, lines, f"{spent}; atlas: {page}")
