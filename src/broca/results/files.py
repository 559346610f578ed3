"""Out folders, and files that are written completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from broca.errors import BadInput


def write_beside(path: Path, text: str) -> None:
    """Writes UTF-8 text to a temporary file beside its path, syncs it, then renames it.

    Raises:
        BadInput: The path cannot be written, or the disk is full; an existing file is unchanged.
    """
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise BadInput(
            f"'{path}' cannot be written ({error.strerror}): free space or choose another folder, "
            "then repeat the command"
        ) from error


def check_out_folder(out: str | Path) -> Path:
    """Creates the out folder and checks that it can be written, before anything is measured.

    Raises:
        BadInput: The folder cannot be created or written.
    """
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".broca-write-test"
        probe.write_text("", encoding="utf-8")
        probe.unlink()
    except OSError as error:
        raise BadInput(
            f"`out` '{out}' cannot be written ({error.strerror}): choose another folder"
        ) from error
    return folder
