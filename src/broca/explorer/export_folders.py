"""The folders of the live page's exports until they are downloaded."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from broca.errors import BadInput
from broca.results.files import check_out_folder


class Exports:
    """Folders of exports, numbered from 1.

    Args:
        parent: Parent folder; None for a temporary folder, removed on closing.

    Raises:
        BadInput: The folder cannot be written.
    """

    def __init__(self, parent: str | Path | None = None) -> None:
        self._temporary = None if parent else TemporaryDirectory(prefix="broca-exports-")
        self._parent = check_out_folder(self._temporary.name if self._temporary else parent or "")
        self._folders: list[Path] = []

    def close(self) -> None:
        """Removes the temporary folder."""
        if self._temporary is not None:
            self._temporary.cleanup()

    @contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """Creates a new folder, `name-1` or the next free number; an empty folder is removed."""
        for number in count(1):
            folder = self._parent / f"{name}-{number}"
            with suppress(FileExistsError):
                folder.mkdir()
                break
        try:
            yield folder
        finally:
            with suppress(OSError):  # it is not empty
                folder.rmdir()

    def add(self, folder: Path) -> int:
        """Adds a complete export, and returns its number."""
        self._folders.append(folder)
        return len(self._folders)

    def __getitem__(self, number: int) -> Path:
        """Returns the folder of an export.

        Raises:
            BadInput: There is no export of this number.
        """
        if not 1 <= number <= len(self._folders):
            raise BadInput(f"export {number} is not known: start it from the page")
        return self._folders[number - 1]


def write_zip(folder: Path, to: IO[bytes]) -> None:
    """Writes a folder as a zip file, piece by piece, to a file that need not be seekable."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(file, f"{folder.name}/{file.relative_to(folder)}")
