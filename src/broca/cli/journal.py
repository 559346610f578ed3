"""`broca journal`: what a journal holds, whether it is sound, its rows as a table, pruning."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from broca.cli.run_options import Json
from broca.errors import BadInput, JournalDamaged


def journal(
    file: Annotated[str, typer.Argument(help="A journal, such as broca-out/journal.sqlite.")],
    check: Annotated[
        bool, typer.Option("--check", help="Examine every page, seal and digest.")
    ] = False,
    export: Annotated[
        str | None, typer.Option(help="Write all rows to a file, .csv or .parquet.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Drop what no run asked for, and shrink the file.")
    ] = False,
    forget: Annotated[
        list[int] | None, typer.Option(help="With --prune: drop this run first; repeat for more.")
    ] = None,
    json: Json = False,
) -> None:
    """Show what a journal FILE holds; only --prune changes it."""
    from broca.journal import Journal, read_runs
    from broca.journal.checking import check as examine
    from broca.journal.exporting import export as write

    if forget and not prune:
        raise BadInput("--forget drops runs only together with --prune: add --prune")
    if prune:
        _prune(file, forget or [], json=json)
        return
    with Journal(file, read_only=True) as opened:
        if check:
            findings = examine(opened)
            for finding in findings:
                state = "ok" if finding.passed else "DAMAGED"
                typer.echo(f"{state}: {finding.name}" + _after(finding.wrong))
            wrong = [finding for finding in findings if not finding.passed]
            if wrong:
                raise JournalDamaged(
                    f"journal '{file}' is damaged ({wrong[0].wrong}): restore it from a copy, or "
                    "move it away and give the command again, which measures its rows anew"
                )
            return
        if export is not None:
            typer.echo(f"{write(opened, export):,} rows written to {export}")
            return
        counts = {
            name: opened.query(f"SELECT count(*) FROM {name}")[0][0]
            for name in ("rows", "masks", "items", "gradients", "outputs", "vectors")
        }
        observed = dict(opened.query("SELECT kind, count(*) FROM vectors GROUP BY kind"))
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
            content = {"counts": counts, "vectors": observed, "runs": listed}
            sys.stdout.write(json_format.dumps(content, indent=2) + "\n")
            return
        typer.echo(", ".join(f"{count:,} {name}" for name, count in counts.items()))
        for weights, dtype, ablation, scale, response, count in kinds:
            typer.echo(
                f"weights {weights[:12]} ({dtype}), {ablation} ablation to {scale:g}, {response}: "
                f"{count:,} rows"
            )
        for kind, count in observed.items():
            typer.echo(f"{kind}: {count:,} vectors")
        for run in runs:
            state = f"finished {run.finished}" if run.finished else "not finished"
            request = run.settings
            typer.echo(
                f"run {run.id}: {request.get('task')} by {request.get('method')}, seed "
                f"{request.get('seed')}: {run.rows:,} rows measured, {run.tokens:,} tokens, {state}"
            )


def _prune(file: str, forget: list[int], *, json: bool) -> None:
    from broca.journal import Journal, prune

    if not Path(file).is_file():
        raise BadInput(f"journal '{file}' does not exist: check the path")
    with Journal(file) as opened:
        pruned = prune(opened, forget=forget)
    if json:
        sys.stdout.write(json_format.dumps(asdict(pruned), indent=2) + "\n")
        return
    typer.echo(
        f"dropped {pruned.rows:,} rows, {pruned.vectors:,} vectors and {pruned.outputs:,} outputs; "
        f"the file is {pruned.bytes:,} bytes smaller"
    )


def _after(wrong: str) -> str:
    return f" ({wrong})" if wrong else ""
