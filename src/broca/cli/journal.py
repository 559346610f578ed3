"""`broca journal`: what a journal holds, whether it is sound, and its rows as a table."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from broca.cli.run_options import Json
from broca.errors import JournalDamaged


def journal(
    file: Annotated[str, typer.Argument(help="A journal, such as broca-out/journal.sqlite.")],
    check: Annotated[
        bool, typer.Option("--check", help="Examine every page, seal and digest.")
    ] = False,
    export: Annotated[
        str | None, typer.Option(help="Write all rows to a file, .csv or .parquet.")
    ] = None,
    json: Json = False,
) -> None:
    """Show what a journal FILE holds; nothing in it is changed."""
    from broca.journal import Journal, read_runs
    from broca.journal.checking import check as examine
    from broca.journal.exporting import export as write

    with Journal(file, read_only=True) as opened:
        if check:
            findings = examine(opened)
            for one in findings:
                typer.echo(f"{'ok' if one.passed else 'DAMAGED'}: {one.name}" + _after(one.wrong))
            wrong = [one for one in findings if not one.passed]
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
            for name in ("rows", "masks", "items", "gradients", "outputs")
        }
        kinds = opened.query(
            "SELECT weights, dtype, ablation, scale, conditions.response, count(*) FROM rows "
            "JOIN conditions ON conditions.id = rows.condition GROUP BY conditions.id"
        )
        runs = read_runs(opened)
        if json:
            listed = [
                {**asdict(one), "items": len(one.items), "components": len(one.components)}
                for one in runs
            ]
            sys.stdout.write(json_format.dumps({"counts": counts, "runs": listed}, indent=2) + "\n")
            return
        typer.echo(", ".join(f"{count:,} {name}" for name, count in counts.items()))
        for weights, dtype, ablation, scale, response, count in kinds:
            typer.echo(
                f"weights {weights[:12]} ({dtype}), {ablation} ablation to {scale:g}, {response}: "
                f"{count:,} rows"
            )
        for run in runs:
            state = f"finished {run.finished}" if run.finished else "not finished"
            asked = run.settings
            typer.echo(
                f"run {run.id}: {asked.get('task')} by {asked.get('method')}, seed "
                f"{asked.get('seed')}: {run.rows:,} rows measured, {run.tokens:,} tokens, {state}"
            )


def _after(wrong: str) -> str:
    return f" ({wrong})" if wrong else ""
