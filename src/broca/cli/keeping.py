"""What every measuring command shares: its out folder, its journal, and how Ctrl+C ends it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from broca.errors import BrocaError, Interrupted

if TYPE_CHECKING:
    from broca.runs.recording import Journaling


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
    from broca.runs.folder import RunFolder

    command = ["broca", *sys.argv[1:]]
    folder = RunFolder.claim(
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

    try:
        with kept_in(folder.journal, keep_outputs=keep_outputs, on_begin=folder.note) as journaling:
            yield journaling
    except Interrupted:
        raise
    except BrocaError:
        folder.release()
        raise


@contextmanager
def kept_in(
    journal: Path,
    *,
    keep_outputs: float = 0.0,
    on_begin: Callable[[dict[str, Any]], None] = lambda facts: None,
) -> Iterator[Journaling]:
    """Keeps what is measured in a journal; Ctrl+C ends after the batch.

    Args:
        journal: Its file.
        keep_outputs: Share of the rows whose raw output is kept.
        on_begin: Receives the run's digests, once they are known.

    Raises:
        Interrupted: The user asked for an end; the message is the command that goes on.
    """
    from broca.runs.interrupts import Stopper
    from broca.runs.recording import Journaling

    def told() -> None:
        typer.echo("broca: ending after this batch; Ctrl+C again ends at once", err=True)

    with Stopper(told) as stopper:
        try:
            yield Journaling(journal, keep_outputs, stopper, on_begin)
        except (Interrupted, KeyboardInterrupt) as error:
            command = ["broca", *sys.argv[1:]]
            going_on = shlex.join(word for word in command if word != "--fresh")
            raise Interrupted(
                f"interrupted; what was measured is kept in '{journal}'; this goes on: {going_on}"
            ) from error


def absolute(path: str) -> str:
    """The path as any folder knows it, for a record that outlives the command's own."""
    return str(Path(path).expanduser().absolute())
