"""Writes files so that a reader never meets half of one."""

from __future__ import annotations

import os
from pathlib import Path

from broca.errors import BadInput


def write_beside(path: Path, text: str) -> None:
    """Writes UTF-8 text beside its place, has it on the disk, then renames it.

    Raises:
        BadInput: The place cannot be written, or the disk is full; what was there is unchanged.
    """
    beside = path.with_name(path.name + ".part")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise BadInput(
            f"'{path}' cannot be written ({error.strerror}): make room or choose another folder, "
            "then give the same command again"
        ) from error
