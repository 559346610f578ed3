"""What every measuring command shares: its out folder, its journal, and how Ctrl+C ends it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from broca.errors import BrocaError, Interrupted

if TYPE_CHECKING:
    from broca.runs import Journaling


@contextmanager
def keeping(
    out: Path,
    *,
    verb: str,
    asked: Mapping[str, Any],
    how: Mapping[str, Any],
    journal: str | None,
    keep_outputs: float,
    fresh: bool,
    resume: bool,
) -> Iterator[Journaling]:
    """Claims the out folder and keeps what is measured; Ctrl+C ends after the batch.

    Args:
        out: The out folder; it exists.
        verb: The command's first word.
        asked: What decides the result.
        how: What only decides how it is computed.
        journal: A journal to share; the folder's own if None.
        keep_outputs: Share of the rows whose raw output is kept.
        fresh: Begin anew.
        resume: Refuse a folder that holds no run.

    Raises:
        Interrupted: The user asked for an end; the message is the command that goes on.
        BrocaError: The folder holds something else.
    """
    from broca.interrupts import Stopper
    from broca.outfolder import OutFolder
    from broca.runs import Journaling

    command = ["broca", *sys.argv[1:]]
    folder = OutFolder.claim(
        out,
        verb=verb,
        asked=asked,
        how=how,
        command=command,
        journal=journal,
        fresh=fresh,
        resume=resume,
    )
    if folder.resumed:
        typer.echo(f"going on with the run in {out}", err=True)

    def told() -> None:
        typer.echo("broca: ending after this batch; Ctrl+C again ends at once", err=True)

    with Stopper(told) as stopper:
        try:
            yield Journaling(folder.journal, keep_outputs, stopper, folder.note)
        except (Interrupted, KeyboardInterrupt) as error:
            going_on = shlex.join(word for word in command if word != "--fresh")
            raise Interrupted(
                f"interrupted; what was measured is kept in '{folder.journal}'; this goes on: "
                f"{going_on}"
            ) from error
        except BrocaError:
            folder.release()
            raise
