"""`broca journal`: shows, checks, exports and prunes a journal."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from broca.cli.commands import command
from broca.cli.output import print_json, print_result
from broca.cli.wording import say
from broca.errors import BadInput, JournalDamaged


@command
def journal(
    file: str,
    /,
    *,
    check: bool = False,
    export: str | None = None,
    prune: bool = False,
    forget: list[int] | None = None,
    json: bool = False,
) -> None:
    """Show the contents of a journal FILE; only --prune changes it.

    Args:
        file: A journal, such as broca-out/journal.sqlite.
        check: Check every page, seal and digest.
        export: Write all rows to a file, .csv or .parquet.
        prune: Delete rows that no run refers to, and shrink the file.
        forget: With `prune`: delete this run first; may be repeated.
    """
    if forget and not prune:
        raise BadInput("`forget` deletes runs only together with `prune`: add `prune`")
    if prune:
        _prune(file, forget or [], json=json)
    elif check:
        _check(file, json=json)
    elif export is not None:
        _export(file, export, json=json)
    else:
        _show(file, json=json)


def _show(file: str, *, json: bool) -> None:
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


def _check(file: str, *, json: bool) -> None:
    from broca.journal import Journal
    from broca.journal.checking import check

    with Journal(file, read_only=True) as journal:
        findings = check(journal)
    if json:
        print_json({"checks": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            state = "ok" if finding.passed else "DAMAGED"
            say(f"{state}: {finding.name}" + _after(finding.wrong))
    wrong = [finding for finding in findings if not finding.passed]
    if wrong:
        raise JournalDamaged(
            f"journal '{file}' is damaged ({wrong[0].wrong}): restore it from a copy, or "
            "move it away and give the command again, which measures its rows anew"
        )


def _export(file: str, path: str, *, json: bool) -> None:
    from broca.journal import Journal
    from broca.journal.row_table import write_rows

    with Journal(file, read_only=True) as journal:
        rows = write_rows(journal, path)
    if json:
        print_json({"rows": rows, "file": path})
    else:
        say(f"{rows:,} rows written to {path}")


def _prune(file: str, forget: list[int], *, json: bool) -> None:
    from broca.journal import Journal, prune

    if not Path(file).is_file():
        raise BadInput(f"journal '{file}' does not exist: check the path")
    with Journal(file) as opened:
        pruned = prune(opened, forget=forget)
    if json:
        print_json(asdict(pruned))
    else:
        say(
            f"deleted {pruned.rows:,} rows, {pruned.vectors:,} vectors and {pruned.outputs:,} "
            f"outputs; the file is {pruned.bytes:,} bytes smaller"
        )


def _after(wrong: str) -> str:
    return f" ({wrong})" if wrong else ""
