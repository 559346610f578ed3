"""`broca journal`: shows, checks, exports and prunes a journal."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from broca.cli.commands import command
from broca.cli.output import print_json
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
    from broca.journal import Journal, read_runs
    from broca.journal.checking import check as examine
    from broca.journal.row_table import write_rows

    if forget and not prune:
        raise BadInput("`forget` deletes runs only together with `prune`: add `prune`")
    if prune:
        _prune(file, forget or [], json=json)
        return
    with Journal(file, read_only=True) as opened:
        if check:
            findings = examine(opened)
            for finding in findings:
                state = "ok" if finding.passed else "DAMAGED"
                say(f"{state}: {finding.name}" + _after(finding.wrong))
            wrong = [finding for finding in findings if not finding.passed]
            if wrong:
                raise JournalDamaged(
                    f"journal '{file}' is damaged ({wrong[0].wrong}): restore it from a copy, or "
                    "move it away and give the command again, which measures its rows anew"
                )
            return
        if export is not None:
            say(f"{write_rows(opened, export):,} rows written to {export}")
            return
        counts = {
            name: opened.query(f"SELECT count(*) FROM {name}")[0][0]
            for name in ("rows", "masks", "items", "gradients", "outputs", "vectors")
        }
        vectors = dict(opened.query("SELECT kind, count(*) FROM vectors GROUP BY kind"))
        kinds = opened.query(
            "SELECT weights, dtype, ablation, scale, conditions.response, count(*) FROM rows "
            "JOIN conditions ON conditions.id = rows.condition GROUP BY conditions.id"
        )
        runs = read_runs(opened)
        if json:
            listed = [
                {**asdict(run), "items": len(run.items), "components": len(run.components)}
                for run in runs
            ]
            print_json({"counts": counts, "vectors": vectors, "runs": listed})
            return
        say(", ".join(f"{count:,} {name}" for name, count in counts.items()))
        for weights, dtype, ablation, scale, response, count in kinds:
            say(
                f"weights {weights[:12]} ({dtype}), {ablation} ablation to {scale:g}, {response}: "
                f"{count:,} rows"
            )
        say(*(f"{kind}: {count:,} vectors" for kind, count in vectors.items()))
        for run in runs:
            state = f"finished {run.finished}" if run.finished else "not finished"
            settings = run.settings
            say(
                f"run {run.id}: {settings.get('task')} by {settings.get('method')}, seed "
                f"{settings.get('seed')}: {run.rows:,} rows measured, {run.tokens:,} tokens, "
                f"{state}"
            )


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
