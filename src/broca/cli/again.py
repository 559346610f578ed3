"""Commands that use measured rows again."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from broca.cli.find import additivity_line
from broca.cli.output import console, print_json, print_result, print_table
from broca.cli.progress import ProgressDisplay, ProgressPrint
from broca.cli.wording import say
from broca.errors import NotReproduced
from broca.options import RefitOptions, RerunOptions

SHOWN = 10
"""Number of components of a refit that are printed at least."""


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

    contents = broca.inspect_journal(file)
    if json:
        print_result(contents)
        return
    say(contents.summary()[0])
    for condition in contents.conditions:
        say(
            f"weights {condition.weights[:12]} ({condition.dtype}), {condition.ablation} ablation "
            f"to {condition.scale:g}, {condition.response}: {condition.rows:,} rows"
        )
    say(*(f"{kind}: {count:,} vectors" for kind, count in contents.vectors.items()))
    for run in contents.runs:
        state = f"finished {run.finished}" if run.finished else "not finished"
        seed = f", seed {run.settings['seed']}" if "seed" in run.settings else ""
        say(
            f"run {run.id}: {run.subject} by {run.procedure}{seed}: {run.rows:,} rows measured, "
            f"{run.tokens:,} tokens, {state}"
        )


def rerun(options: RerunOptions, *, prints: ProgressPrint = ProgressPrint()) -> None:
    """Repeat the run of FOLDER from its journal alone, or from scratch, and compare."""
    import broca

    with closing(ProgressDisplay(prints)) as progress:
        comparison = broca.rerun(settings=replace(options, on_progress=progress))
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
    if json:
        print_result(result)
        return
    screen = console()
    print_table(
        screen,
        f"{result.recovery} on {result.masks:,} masks of {result.method}",
        "head|effect|90 % interval|frequency|q",
        (
            (
                head.name,
                f"{head.effect:+.4f}",
                "" if head.ci is None else f"{head.ci[0]:+.3f} to {head.ci[1]:+.3f}",
                "" if head.frequency is None else f"{head.frequency:.2f}",
                "" if head.q_value is None else f"{head.q_value:.3g}",
                "bold" if head.name in result.selected else None,
            )
            for head in result.ranking[: max(SHOWN, len(result.selected))]
        ),
    )
    lines = [
        f"selected for {result.task}: {', '.join(result.selected)}"
        if result.selected
        else f"No heads selected: {result.reason}."
    ]
    if result.additivity is not None:
        lines.append(additivity_line(result.additivity))
    lines += [f"note: {note}" for note in result.notes]
    for line in lines:
        screen.print(line, markup=False)
    if path is not None:
        screen.print(f"written to {path}", markup=False, soft_wrap=True)
